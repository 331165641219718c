package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"
)

// secret is a file: where it lies below the store's folder, who reads it and with which mode.
type secret struct {
	name string
	user int // in the container image of its reader
	mode fs.FileMode
}

// The users that the images run as; root, who runs this program, is the certificate authority.
const (
	root    = 0
	proxy   = 99
	grafana = 472
	target  = 10001
)

var (
	adminPassword     = secret{"grafana/admin-password", grafana, 0o600}
	privateKey        = secret{"authz/private-key.pem", target, 0o600}
	publicKey         = secret{"authz/public-key.pem", target, 0o600}
	authorityKey      = secret{"authority/ca-key.pem", root, 0o600}
	authority         = secret{"ca/ca.pem", root, 0o644}
	serverCertificate = secret{"proxy/server.pem", proxy, 0o600}
	clientCertificate = secret{"proxy/client.pem", proxy, 0o600}
)

// store keeps secrets below one folder.
type store struct {
	folder string
	give   bool // each file to its reader
}

// read returns a secret's content; nothing where there is none yet.
func (store store) read(secret secret) ([]byte, error) {
	content, err := os.ReadFile(store.path(secret))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return content, err
}

// write puts a secret in place whole or not at all, even if the machine stops half-way.
func (store store) write(secret secret, content []byte, reason string) error {
	path := store.path(secret)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	unfinished := path + ".new"
	if err := os.Remove(unfinished); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := store.writeNew(unfinished, secret, content); err != nil {
		_ = os.Remove(unfinished)
		return err
	}
	if err := os.Rename(unfinished, path); err != nil {
		return err
	}
	log.Printf("made %s: %s", secret.name, reason)
	return syncFolder(filepath.Dir(path))
}

func (store store) writeNew(path string, secret secret, content []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	// The mode before the owner: afterwards it is not ours to change.
	if err == nil {
		err = file.Chmod(secret.mode)
	}
	if err == nil && store.give {
		err = file.Chown(secret.user, -1)
	}
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// keep corrects who may read a secret that stays as it is.
func (store store) keep(secret secret) error {
	status, err := os.Stat(store.path(secret))
	if err != nil {
		return err
	}
	if status.Mode().Perm() == secret.mode && (!store.give || owner(status) == secret.user) {
		return nil
	}
	content, err := store.read(secret)
	if err != nil {
		return err
	}
	return store.write(secret, content, fmt.Sprintf("it had mode %v", status.Mode().Perm()))
}

func (store store) path(secret secret) string {
	return filepath.Join(store.folder, filepath.FromSlash(secret.name))
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
