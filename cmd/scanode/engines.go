package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/spf13/pflag"

	"scanode/storage"
	"scanode/storage/couch"
	"scanode/storage/home"
	"scanode/storage/lsm"
)

// oneStore is an engine for a command that works on one store, and its end.
type oneStore struct {
	storage.Engine
	name string
	end  func()
}

// newOneStore returns the engine of a name.
func newOneStore(name string, memory memoryFlags) (oneStore, error) {
	switch name {
	case lsm.Name:
		e := lsm.New(memory.engineConfig())
		return oneStore{Engine: e, name: name, end: e.Close}, nil
	case couch.Name:
		return oneStore{Engine: couch.New(couch.Config{}), name: name, end: func() {}}, nil
	}
	return oneStore{}, fmt.Errorf("engine %q: there are %s and %s", name, lsm.Name, couch.Name)
}

// engineOf says which engine the store in dir belongs to.
func engineOf(dir string) (string, error) {
	b, err := home.ReadSmall(vfs.Default, filepath.Join(dir, home.MarkerName))
	if err != nil {
		return "", fmt.Errorf("%s is no store: %w", dir, err)
	}
	name, _, _, ok := home.ParseMarker(b)
	if !ok {
		return "", fmt.Errorf("%s: %w: %s cannot be read", dir, storage.ErrCorrupt, home.MarkerName)
	}
	return name, nil
}

// optionFlags are engine options as name=value.
type optionFlags []string

func (f *optionFlags) register(fs *pflag.FlagSet) {
	fs.StringArrayVar((*[]string)(f), "option", nil, "engine option of the new store, as `name=value`; may be given several times")
}

// parse turns them into what engines take.
func (f optionFlags) parse() (map[string]any, error) {
	options := map[string]any{}
	for _, text := range f {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("--option %q: it is not name=value", text)
		}
		if _, ok := options[name]; ok {
			return nil, fmt.Errorf("--option %s is given twice", name)
		}
		if strings.HasPrefix(name, "expiry_") {
			return nil, errors.New("--option expiry_…: use --expiry, and give limits when the store is opened")
		}
		options[name] = value
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			options[name] = n
		} else if b, err := strconv.ParseBool(value); err == nil {
			options[name] = b
		}
	}
	return options, nil
}
