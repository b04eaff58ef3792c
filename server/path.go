package server

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
)

// AbsolutePath accepts every absolute path: for a program that serves the BEAM
// it was started by, with the same rights.
func AbsolutePath(dir string) (string, error) {
	if !filepath.IsAbs(dir) {
		return "", errors.New("the path must be absolute")
	}
	return filepath.Clean(dir), nil
}

// BelowPath accepts relative paths only and places them below root, an absolute
// path. A path with "..", or one that leaves root through a symbolic link, is
// refused.
func BelowPath(root string) func(dir string) (string, error) {
	return func(dir string) (string, error) {
		if !filepath.IsLocal(dir) {
			return "", errors.New("the path must be relative to this node's data directory and stay below it")
		}
		real, err := filepath.EvalSymlinks(root)
		if err != nil {
			return "", err
		}
		path := filepath.Join(real, dir)
		// The last parts may not exist yet; whatever does must be below root
		// after its links are followed.
		for at := path; at != real; at = filepath.Dir(at) {
			target, err := filepath.EvalSymlinks(at)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return "", err
			}
			if target != real && !strings.HasPrefix(target, real+string(filepath.Separator)) {
				return "", errors.New("a symbolic link on the path leads out of this node's data directory")
			}
			return target + strings.TrimPrefix(path, at), nil
		}
		return path, nil
	}
}
