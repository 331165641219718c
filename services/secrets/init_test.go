package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var all = []secret{
	adminPassword, privateKey, publicKey, authorityKey, authority, serverCertificate, clientCertificate,
}

func TestMain(tests *testing.M) {
	log.SetOutput(io.Discard)
	os.Exit(tests.Run())
}

// made is a store in which everything has just been made.
func made(t *testing.T) store {
	t.Helper()
	store := store{folder: t.TempDir()}
	mustMake(t, store, time.Now())
	return store
}

func mustMake(t *testing.T, store store, now time.Time) {
	t.Helper()
	if err := makeSecrets(store, now); err != nil {
		t.Fatal(err)
	}
}

func contents(t *testing.T, store store) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, secret := range all {
		content, err := store.read(secret)
		if err != nil {
			t.Fatal(err)
		}
		found[secret.name] = string(content)
	}
	return found
}

// changed names what differs between two states of a store.
func changed(before, after map[string]string) string {
	var names []string
	for _, secret := range all {
		if before[secret.name] != after[secret.name] {
			names = append(names, secret.name)
		}
	}
	return strings.Join(names, " ")
}

func TestEverySecretIsMadeAndReadableByItsOwnerAlone(t *testing.T) {
	store := made(t)
	for _, secret := range all {
		status, err := os.Stat(store.path(secret))
		if err != nil {
			t.Fatal(err)
		}
		if status.Size() == 0 || status.Mode().Perm() != secret.mode {
			t.Errorf("%s has %d bytes and mode %v", secret.name, status.Size(), status.Mode())
		}
	}
	if adminPassword.mode != 0o600 || authority.mode != 0o644 {
		t.Error("only the authority's certificate is for all")
	}
}

func TestWhatIsThereAndValidStays(t *testing.T) {
	store := made(t)
	before := contents(t, store)
	mustMake(t, store, time.Now())
	if names := changed(before, contents(t, store)); names != "" {
		t.Errorf("made again: %s", names)
	}
}

func TestWhatIsBrokenIsMadeAgainWithWhatHangsOnIt(t *testing.T) {
	cases := map[string]struct {
		secret secret
		made   string
	}{
		"empty password":       {adminPassword, "grafana/admin-password"},
		"private key":          {privateKey, "authz/private-key.pem authz/public-key.pem"},
		"public key alone":     {publicKey, "authz/public-key.pem"},
		"server's certificate": {serverCertificate, "proxy/server.pem"},
		"authority's key":      {authorityKey, "authority/ca-key.pem ca/ca.pem proxy/server.pem proxy/client.pem"},
		"authority":            {authority, "authority/ca-key.pem ca/ca.pem proxy/server.pem proxy/client.pem"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			store := made(t)
			intact := contents(t, store)
			broken := intact[test.secret.name][:len(intact[test.secret.name])/2]
			if test.secret == adminPassword {
				broken = "\n"
			}
			if err := os.WriteFile(store.path(test.secret), []byte(broken), 0o600); err != nil {
				t.Fatal(err)
			}
			mustMake(t, store, time.Now())
			after := contents(t, store)
			if test.secret == publicKey && after[publicKey.name] != intact[publicKey.name] {
				t.Error("the public key is not the private one's")
			}
			before := intact
			before[test.secret.name] = broken
			if names := changed(before, after); names != test.made {
				t.Errorf("made again: %q, wanted %q", names, test.made)
			}
		})
	}
}

func TestCertificatesAreRenewedInTheirLastWeekOnly(t *testing.T) {
	store := made(t)
	start := time.Now()
	before := contents(t, store)
	mustMake(t, store, start.Add(leafLifetime-renewBefore-time.Hour))
	if names := changed(before, contents(t, store)); names != "" {
		t.Errorf("an hour too early: %s", names)
	}
	mustMake(t, store, start.Add(leafLifetime-renewBefore+time.Hour))
	after := contents(t, store)
	if names := changed(before, after); names != "proxy/server.pem proxy/client.pem" {
		t.Errorf("in the last week: %q", names)
	}
	mustMake(t, store, start.Add(authorityLifetime-renewBefore+time.Hour))
	wanted := "authority/ca-key.pem ca/ca.pem proxy/server.pem proxy/client.pem"
	if names := changed(after, contents(t, store)); names != wanted {
		t.Errorf("in the authority's last week: %q", names)
	}
}

func TestAModeThatLetsOthersReadIsCorrected(t *testing.T) {
	store := made(t)
	before := contents(t, store)
	if err := os.Chmod(store.path(privateKey), 0o644); err != nil {
		t.Fatal(err)
	}
	mustMake(t, store, time.Now())
	status, err := os.Stat(store.path(privateKey))
	if err != nil || status.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", status.Mode(), err)
	}
	if names := changed(before, contents(t, store)); names != "" {
		t.Errorf("made again: %s", names)
	}
}

func TestAnInterruptedWriteLeavesNothingBehind(t *testing.T) {
	store := store{folder: t.TempDir()}
	unfinished := store.path(adminPassword) + ".new"
	if err := os.MkdirAll(filepath.Dir(unfinished), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(unfinished, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	mustMake(t, store, time.Now())
	found, err := filepath.Glob(filepath.Join(store.folder, "*", "*.new"))
	if err != nil || len(found) > 0 {
		t.Errorf("left behind: %v, %v", found, err)
	}
}

func TestEachFileIsGivenToItsReader(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give files away")
	}
	store := store{folder: t.TempDir(), give: true}
	mustMake(t, store, time.Now())
	before := contents(t, store)
	mustMake(t, store, time.Now())
	for _, secret := range all {
		status, err := os.Stat(store.path(secret))
		if err != nil || owner(status) != secret.user {
			t.Errorf("%s belongs to %d, %v", secret.name, owner(status), err)
		}
	}
	if names := changed(before, contents(t, store)); names != "" {
		t.Errorf("made again: %s", names)
	}
}

func TestTheTunnelsTwoEndsBelieveEachOther(t *testing.T) {
	store := made(t)
	files := contents(t, store)
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(files[authority.name])) {
		t.Fatal("no certificate of the authority")
	}
	server := &tls.Config{
		Certificates: []tls.Certificate{pair(t, files[serverCertificate.name])},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    pool,
	}
	for _, name := range []string{"target", "proxy", "localhost", "127.0.0.1", "::1"} {
		with := &tls.Config{
			Certificates: []tls.Certificate{pair(t, files[clientCertificate.name])},
			RootCAs:      pool,
			ServerName:   name,
		}
		if err := handshake(server, with); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if handshake(server, &tls.Config{RootCAs: pool, ServerName: "proxy"}) == nil {
		t.Error("let in without a certificate")
	}
	posing := &tls.Config{
		Certificates: []tls.Certificate{pair(t, files[serverCertificate.name])},
		RootCAs:      pool,
		ServerName:   "proxy",
	}
	if handshake(server, posing) == nil {
		t.Error("let in with a server's certificate")
	}
}

func pair(t *testing.T, content string) tls.Certificate {
	t.Helper()
	loaded, err := tls.X509KeyPair([]byte(content), []byte(content))
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// handshake connects a client to a server; the server's word counts, which TLS 1.3 hears last.
func handshake(server, client *tls.Config) error {
	near, far := net.Pipe()
	failed := make(chan error, 1)
	go func() {
		connection := tls.Server(far, server)
		failed <- errors.Join(connection.Handshake(), far.Close())
	}()
	connection := tls.Client(near, client)
	err := connection.Handshake()
	_, _ = io.Copy(io.Discard, connection)
	return errors.Join(err, <-failed)
}

func TestWrongUsage(t *testing.T) {
	t.Setenv("SPIKELAB_SECRETS", "")
	for _, arguments := range [][]string{{}, {"--nonsense"}, {"--folder", "x", "more"}} {
		if code := run(arguments); code != exitUsage {
			t.Errorf("%v: exit code %d", arguments, code)
		}
	}
	if code := run([]string{"--folder", "/dev/null/here"}); code != exitFailure {
		t.Errorf("exit code %d", code)
	}
}
