package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"scanode/etf"
	"scanode/node"
)

// asProgram is the variable that makes the test binary the program.
const asProgram = "SCANODE_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const secretCookie = "cookie-nobody-may-see"

// TestNothingSecret runs the program with a cookie and a key, at its most
// talkative, through good and bad handshakes, and lets it die with a report of all
// goroutines: no secret is in its arguments, its environment or its output.
func TestNothingSecret(t *testing.T) {
	dir := t.TempDir()
	cookieFile := filepath.Join(dir, "cookie")
	write(t, cookieFile, []byte(secretCookie+"\n"), 0o400)
	creds, keyPEM := selfSigned(t, dir)
	cmd := exec.Command(os.Args[0], "serve", "--name", "secret@127.0.0.1", "--epmd", "none", "--verbose",
		"--data", filepath.Join(dir, "data"), "--cookie-file", cookieFile,
		"--tls-cert", filepath.Join(dir, "cert.pem"), "--tls-key", filepath.Join(dir, "key.pem"), "--tls-ca", filepath.Join(dir, "cert.pem"))
	cmd.Env = append(os.Environ(), asProgram+"=1", "GOTRACEBACK=system")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	lines := bufio.NewReader(io.TeeReader(stderr, &out))
	addr := regexp.MustCompile(`node up.*addr=127\.0\.0\.1:(\d+)`)
	var port uint64
	for port == 0 {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("%v: %s", err, out.String())
		}
		if m := addr.FindStringSubmatch(line); m != nil {
			port, _ = strconv.ParseUint(m[1], 10, 16)
		}
	}
	connect := func(name, cookie string, secured bool) error {
		cfg := node.Config{Name: etf.Atom(name), Cookie: node.Cookie(cookie), PeerPort: uint16(port), Handler: silent{},
			Logger: slog.New(slog.DiscardHandler)}
		if secured {
			cfg.TLS = func() (node.Credentials, error) { return creds, nil }
		}
		n, err := node.Start(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer n.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		l, err := n.Connect(ctx, "secret@127.0.0.1")
		if err == nil {
			// No term at all: the server refuses it.
			l.Send(etf.Pid{Node: "secret@127.0.0.1", ID: 2}, []byte{255}, nil)
		}
		return err
	}
	if err := connect("a@127.0.0.1", secretCookie, true); err != nil {
		t.Error(err)
	}
	if err := connect("b@127.0.0.1", "another", true); !errors.Is(err, node.ErrWrongCookie) {
		t.Errorf("with another cookie: %v", err)
	}
	if err := connect("c@127.0.0.1", secretCookie, false); !errors.Is(err, node.ErrPeerTLS) {
		t.Errorf("without TLS: %v", err)
	}
	for _, file := range []string{"cmdline", "environ"} {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", cmd.Process.Pid, file))
		if err != nil {
			t.Log(err) // no such file system
		}
		out.Write(b)
	}
	// The last of what it has to say of the three, before it is ended.
	for !strings.Contains(out.String(), "plain distribution") {
		if _, err := lines.ReadString('\n'); err != nil {
			t.Fatalf("%v: %s", err, out.String())
		}
	}
	cmd.Process.Signal(syscall.SIGQUIT)
	if _, err := io.Copy(io.Discard, lines); err != nil {
		t.Error(err)
	}
	cmd.Wait()
	got := out.String()
	for _, want := range []string{"link up", "wrong cookie", "plain distribution", "goroutine "} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in its output", want)
		}
	}
	secrets := []string{secretCookie, fmt.Sprintf("%x", secretCookie), strings.Trim(fmt.Sprint([]byte(secretCookie)), "[]")}
	for _, line := range strings.Split(strings.TrimSpace(keyPEM), "\n")[1:3] {
		secrets = append(secrets, line)
	}
	for _, secret := range secrets {
		if strings.Contains(got, secret) {
			t.Errorf("it shows %s", secret)
		}
	}
}

// silent is a handler of links nothing comes from.
type silent struct{}

func (silent) Up(*node.Link)                        {}
func (silent) Message(*node.Link, etf.Atom, []byte) {}
func (silent) Down(*node.Link, error)               {}

// TestSecretFiles refuses files that others can read, or that are none.
func TestSecretFiles(t *testing.T) {
	dir := t.TempDir()
	good, open := filepath.Join(dir, "good"), filepath.Join(dir, "open")
	write(t, good, []byte(" a cookie\n"), 0o400)
	write(t, open, []byte(secretCookie), 0o644)
	if c, err := readCookie(good); err != nil || string(c) != "a cookie" {
		t.Errorf("%q, %v", string(c), err)
	}
	for _, path := range []string{open, dir, filepath.Join(dir, "none"), "/dev/null"} {
		if _, err := readCookie(path); err == nil || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), secretCookie) {
			t.Errorf("%s: %v", path, err)
		}
	}
	selfSigned(t, dir)
	f := tlsFlags{cert: filepath.Join(dir, "cert.pem"), key: filepath.Join(dir, "key.pem"), ca: filepath.Join(dir, "cert.pem")}
	if _, err := f.read(); err != nil {
		t.Error(err)
	}
	if err := os.Chmod(f.key, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := f.read(); err == nil || !strings.Contains(err.Error(), "--tls-key") {
		t.Errorf("a key that others can read: %v", err)
	}
	if err := os.Chmod(f.key, 0o400); err != nil {
		t.Fatal(err)
	}
	f.ca = good
	if _, err := f.read(); err == nil || !strings.Contains(err.Error(), "--tls-ca") {
		t.Errorf("no authorities: %v", err)
	}
}

func write(t *testing.T, path string, b []byte, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, b, mode); err != nil {
		t.Fatal(err)
	}
}

// selfSigned writes cert.pem and key.pem, its own authority.
func selfSigned(t *testing.T, dir string) (node.Credentials, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	write(t, filepath.Join(dir, "cert.pem"), certPEM, 0o644)
	write(t, filepath.Join(dir, "key.pem"), keyPEM, 0o400)
	cert, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certPEM)
	return node.Credentials{Certificate: cert, Roots: roots}, string(keyPEM)
}
