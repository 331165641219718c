package main

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
)

const tokenKeyBits = 2048

const (
	blockPrivateKey  = "PRIVATE KEY"
	blockPublicKey   = "PUBLIC KEY"
	blockCertificate = "CERTIFICATE"
)

var errNoPEM = errors.New("it holds no such PEM block")

func makePassword(store store) error {
	content, err := store.read(adminPassword)
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(content)) > 0 {
		return store.keep(adminPassword)
	}
	return store.write(adminPassword, []byte(rand.Text()+rand.Text()), "there was none")
}

// makeTokenKeys makes the pair that signs and verifies tokens. The private half decides: the public
// one is made from it, so that tokens minted before stay good.
func makeTokenKeys(store store) error {
	content, err := store.read(privateKey)
	if err != nil {
		return err
	}
	key, err := tokenKey(content)
	if err == nil {
		err = store.keep(privateKey)
	} else {
		key, err = newTokenKey(store, reason(content, err))
	}
	if err != nil {
		return err
	}
	return makePublicKey(store, key)
}

func newTokenKey(store store, reason string) (*rsa.PrivateKey, error) {
	key, err := rsa.GenerateKey(rand.Reader, tokenKeyBits)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, store.write(privateKey, encode(blockPrivateKey, der), reason)
}

func makePublicKey(store store, key *rsa.PrivateKey) error {
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	wanted := encode(blockPublicKey, der)
	content, err := store.read(publicKey)
	if err != nil {
		return err
	}
	if bytes.Equal(content, wanted) {
		return store.keep(publicKey)
	}
	return store.write(publicKey, wanted, reason(content, errors.New("it is not the private key's")))
}

func tokenKey(content []byte) (*rsa.PrivateKey, error) {
	der, err := decode(content, blockPrivateKey)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, errors.New("it holds no PKCS#8 key")
	}
	pair, ok := key.(*rsa.PrivateKey)
	if !ok || pair.N.BitLen() < tokenKeyBits {
		return nil, errors.New("it holds no RSA key of 2048 bits")
	}
	return pair, nil
}

// reason says why a secret is made: it was missing, or what was found wrong with it.
func reason(content []byte, fault error) string {
	if len(content) == 0 {
		return "there was none"
	}
	return fault.Error()
}

func encode(block string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: block, Bytes: der})
}

// decode finds the first block of this type among those in the file.
func decode(content []byte, wanted string) ([]byte, error) {
	for {
		var block *pem.Block
		block, content = pem.Decode(content)
		if block == nil {
			return nil, errNoPEM
		}
		if block.Type == wanted {
			return block.Bytes, nil
		}
	}
}
