// Command spikelab-init makes the secrets of one installation: Grafana's administrator password,
// the key pair that signs tokens, and the certificates of the proxy. What is there and valid stays.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"time"
)

const usage = `spikelab-init: makes the secrets of one installation; leaves those that are there and valid

  --folder DIR   where they lie, a folder for each reader (SPIKELAB_SECRETS; needed)
  --give         give each file to the user that reads it in its container image; needs root
  --help         print this text

    grafana/admin-password     the administrator's password
    authz/private-key.pem      signs tokens: RSA 2048, PKCS#8
    authz/public-key.pem       verifies them: SubjectPublicKeyInfo
    authority/ca-key.pem       key of the installation's own certificate authority
    ca/ca.pem                  its certificate, readable by all
    proxy/server.pem           certificate and key of the proxy
    proxy/client.pem           certificate and key of the tunnel's client

A certificate that ends within a week is made anew. A flag wins over its environment variable.
`

const (
	exitFailure = 1
	exitUsage   = 2
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("spikelab-init: ")
	os.Exit(run(os.Args[1:]))
}

// run does what the arguments ask for and returns the exit code.
func run(arguments []string) int {
	flags := flag.NewFlagSet("spikelab-init", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	folder := flags.String("folder", os.Getenv("SPIKELAB_SECRETS"), "")
	give := flags.Bool("give", false, "")
	switch err := flags.Parse(arguments); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Print(usage)
		return 0
	case err != nil:
		log.Printf("%v (see --help)", err)
		return exitUsage
	case flags.NArg() > 0:
		log.Printf("unexpected argument %q (see --help)", flags.Arg(0))
		return exitUsage
	case *folder == "":
		log.Print("--folder is needed (see --help)")
		return exitUsage
	}
	if err := makeSecrets(store{folder: *folder, give: *give}, time.Now()); err != nil {
		log.Print(err)
		return exitFailure
	}
	return 0
}

// makeSecrets makes every secret that is missing, broken or about to end.
func makeSecrets(store store, now time.Time) error {
	for _, secrets := range []func() error{
		func() error { return makePassword(store) },
		func() error { return makeTokenKeys(store) },
		func() error { return makeCertificates(store, now) },
	} {
		if err := secrets(); err != nil {
			return err
		}
	}
	return nil
}
