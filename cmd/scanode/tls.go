package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"scanode/node"
)

// tlsFlags name the files of TLS distribution.
type tlsFlags struct{ cert, key, ca string }

func (f *tlsFlags) register(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.cert, "tls-cert", "", "speak TLS, as erl -proto_dist inet_tls: PEM file of this node's certificate and its chain.\nIt must name the host of --name, and be good for clients and for servers")
	fs.StringVar(&f.key, "tls-key", "", "PEM file of the certificate's key; only its owner may read it")
	fs.StringVar(&f.ca, "tls-ca", "", "PEM file of the authorities whose certificates peers must show")
	cmd.MarkFlagsRequiredTogether("tls-cert", "tls-key", "tls-ca")
}

// credentials returns what reads the files; nil without TLS.
func (f *tlsFlags) credentials() func() (node.Credentials, error) {
	if f.cert == "" {
		return nil
	}
	return f.read
}

func (f *tlsFlags) read() (c node.Credentials, err error) {
	cert, err := os.ReadFile(f.cert)
	if err != nil {
		return c, fmt.Errorf("--tls-cert: %w", err)
	}
	key, err := readSecret("--tls-key", f.key)
	if err != nil {
		return c, err
	}
	if c.Certificate, err = tls.X509KeyPair(cert, key); err != nil {
		return c, fmt.Errorf("--tls-cert %s and --tls-key %s: %w", f.cert, f.key, err)
	}
	ca, err := os.ReadFile(f.ca)
	if err != nil {
		return c, fmt.Errorf("--tls-ca: %w", err)
	}
	c.Roots = x509.NewCertPool()
	if !c.Roots.AppendCertsFromPEM(ca) {
		return c, fmt.Errorf("--tls-ca %s holds no certificate", f.ca)
	}
	return c, nil
}

// readSecret reads a file that nobody but its owner can read. what names it in
// errors, which show nothing of what it holds.
func readSecret(what, path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	defer file.Close()
	// Of the open file: the name could stand for another one by now.
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if mode := info.Mode(); !mode.IsRegular() || mode.Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s %s must be a plain file that only its owner can read (chmod 400), its mode is %v", what, path, mode)
	}
	b, err := io.ReadAll(io.LimitReader(file, maxSecretBytes))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return b, nil
}

// maxSecretBytes bounds the files that hold secrets.
const maxSecretBytes = 1 << 20
