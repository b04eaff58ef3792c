package lsm

import (
	"testing"

	"scanode/storage"
)

func TestSmoke(t *testing.T) {
	e := New(Config{})
	defer e.Close()
	s, err := e.Open(t.TempDir(), storage.Options{CreateIfMissing: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Apply([]storage.Op{{Kind: storage.Put, Key: []byte("a"), Value: []byte("1")}}, true); err != nil {
		t.Fatal(err)
	}
	v, err := s.Get(nil, []byte("a"))
	if err != nil || string(v) != "1" {
		t.Fatal(v, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
