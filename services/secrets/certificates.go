package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net"
	"slices"
	"time"
)

const (
	day               = 24 * time.Hour
	renewBefore       = 7 * day
	authorityLifetime = 10 * 365 * day
	leafLifetime      = 365 * day
	// Machines whose clocks are a little apart believe a new certificate too.
	clockSkew = time.Hour
)

var (
	errEnding = errors.New("it ends within a week")
	// serverNames is what clients call the proxy, and its tunnel the other end, in both runtimes.
	serverNames     = []string{"target", "proxy", "localhost"}
	serverAddresses = []net.IP{net.IPv4(127, 0, 0, 1).To4(), net.IPv6loopback}
)

// identity is a certificate with its key.
type identity struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// makeCertificates makes the authority first: a new one's leaves are new as well.
func makeCertificates(store store, now time.Time) error {
	signer, err := makeAuthority(store, now)
	if err != nil {
		return err
	}
	server := x509.Certificate{
		Subject:     pkix.Name{CommonName: "proxy"},
		DNSNames:    serverNames,
		IPAddresses: serverAddresses,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if err := makeLeaf(store, serverCertificate, server, signer, now); err != nil {
		return err
	}
	client := x509.Certificate{
		Subject:     pkix.Name{CommonName: "tunnel"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	return makeLeaf(store, clientCertificate, client, signer, now)
}

func makeAuthority(store store, now time.Time) (identity, error) {
	certificate, err := store.read(authority)
	if err != nil {
		return identity{}, err
	}
	key, err := store.read(authorityKey)
	if err != nil {
		return identity{}, err
	}
	known, err := parseIdentity(slices.Concat(certificate, key), now)
	if err == nil {
		return known, errors.Join(store.keep(authorityKey), store.keep(authority))
	}
	return newAuthority(store, reason(certificate, err), now)
}

func newAuthority(store store, reason string, now time.Time) (identity, error) {
	template := x509.Certificate{
		Subject:               pkix.Name{CommonName: "Spikelab, this installation"},
		NotAfter:              now.Add(authorityLifetime),
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	made, err := issue(template, nil, now)
	if err != nil {
		return identity{}, err
	}
	key, err := encodeKey(made.key)
	if err != nil {
		return identity{}, err
	}
	// The key first: a certificate alone would be believed and could sign nothing.
	if err := store.write(authorityKey, key, reason); err != nil {
		return identity{}, err
	}
	return made, store.write(authority, encode(blockCertificate, made.certificate.Raw), reason)
}

func makeLeaf(store store, secret secret, template x509.Certificate, signer identity, now time.Time) error {
	content, err := store.read(secret)
	if err != nil {
		return err
	}
	fault := checkLeaf(content, template, signer, now)
	if fault == nil {
		return store.keep(secret)
	}
	template.NotAfter = now.Add(leafLifetime)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	made, err := issue(template, &signer, now)
	if err != nil {
		return err
	}
	key, err := encodeKey(made.key)
	if err != nil {
		return err
	}
	pair := slices.Concat(encode(blockCertificate, made.certificate.Raw), key)
	return store.write(secret, pair, reason(content, fault))
}

// checkLeaf says what is wrong with a certificate that is there; nil if it may stay.
func checkLeaf(content []byte, wanted x509.Certificate, signer identity, now time.Time) error {
	known, err := parseIdentity(content, now)
	if err != nil {
		return err
	}
	if known.certificate.CheckSignatureFrom(signer.certificate) != nil {
		return errors.New("another authority signed it")
	}
	sameAddresses := slices.EqualFunc(known.certificate.IPAddresses, wanted.IPAddresses, net.IP.Equal)
	if !slices.Equal(known.certificate.DNSNames, wanted.DNSNames) || !sameAddresses {
		return errors.New("it names other servers")
	}
	return nil
}

// parseIdentity reads a certificate and its key, and refuses what does not fit or soon ends.
func parseIdentity(content []byte, now time.Time) (identity, error) {
	der, err := decode(content, blockCertificate)
	if err != nil {
		return identity{}, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return identity{}, errors.New("it holds no certificate")
	}
	der, err = decode(content, blockPrivateKey)
	if err != nil {
		return identity{}, err
	}
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return identity{}, errors.New("it holds no PKCS#8 key")
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || !key.PublicKey.Equal(certificate.PublicKey) {
		return identity{}, errors.New("its key is another certificate's")
	}
	if now.Add(renewBefore).After(certificate.NotAfter) {
		return identity{}, errEnding
	}
	return identity{certificate, key}, nil
}

// issue makes a key and its certificate, signed by the signer or, without one, by itself.
func issue(template x509.Certificate, signer *identity, now time.Time) (identity, error) {
	// ECDSA on P-256, as service meshes do: a handshake costs a fraction of one with RSA.
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return identity{}, err
	}
	template.NotBefore = now.Add(-clockSkew)
	template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return identity{}, err
	}
	parent, signingKey := &template, crypto.Signer(key)
	if signer != nil {
		parent, signingKey = signer.certificate, signer.key
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, parent, key.Public(), signingKey)
	if err != nil {
		return identity{}, err
	}
	certificate, err := x509.ParseCertificate(der)
	return identity{certificate, key}, err
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return encode(blockPrivateKey, der), err
}
