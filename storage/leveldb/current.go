package leveldb

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"scanode/storage"
)

// home returns the one of dirs that has CURRENT.
func home(dirs []string) (string, error) {
	found := ""
	for _, dir := range dirs {
		_, err := os.Stat(filepath.Join(dir, "CURRENT"))
		switch {
		case errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid):
			if _, err := os.Stat(dir); err != nil {
				return "", err
			}
		case err != nil:
			return "", err
		case found != "" && found != dir:
			return "", fmt.Errorf("%s and %s both hold a whole store (CURRENT): they are no two parts of one", found, dir)
		default:
			found = dir
		}
	}
	if found == "" {
		return "", fmt.Errorf("%w: no CURRENT in %s", storage.ErrMissing, strings.Join(dirs, " or "))
	}
	return found, nil
}

// maxCurrentBytes bounds CURRENT, which holds a name and a newline.
const maxCurrentBytes = 256

// current returns the name of the manifest that CURRENT names.
func current(dir string) (string, error) {
	path := filepath.Join(dir, "CURRENT")
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(io.LimitReader(f, maxCurrentBytes))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return "", err
	}
	name, ok := strings.CutSuffix(string(b), "\n")
	digits, ok1 := strings.CutPrefix(name, "MANIFEST-")
	if !ok || !ok1 || digits == "" || strings.Trim(digits, "0123456789") != "" {
		return "", damage(path, 0, "it does not name a manifest")
	}
	return name, nil
}

// readManifest adds up the edits of a manifest. Its end may be torn: that edit was not
// in force yet. Any other damage would make rows come back or vanish anywhere, so it is
// the end even where damage is left out.
func readManifest(path string) (*version, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, damage(path, 0, "the manifest that CURRENT names is missing")
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return parseManifest(path, f)
}

func parseManifest(path string, in io.Reader) (*version, error) {
	v := newVersion()
	r := newRecords(path, in)
	for {
		edit, at, err := r.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if err := v.apply(edit); err != nil {
			return nil, damage(path, at, "%v", err)
		}
	}
	if err := v.check(); err != nil {
		return nil, damage(path, 0, "%v", err)
	}
	return v, nil
}
