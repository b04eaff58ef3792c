package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"scanode/etf"
	"scanode/storage"
	"scanode/storage/dump"
)

func exportCommand() *cobra.Command {
	var f memoryFlags
	cmd := &cobra.Command{
		Use:   "export STORE FILE|-",
		Short: "Write all rows of a store as a portable stream",
		Long: `Write all rows of a store to a file, which must not exist, or to standard output. The
stream (docs/stream.md) has checksums and counts; "scanode import" reads it, and Erlang
programs can. The store must not be open elsewhere. Of a store whose rows expire all rows
are written, with the times of their writing, whether they have expired or not.

The exit status is 0 if all was written, 1 if the store is damaged, 2 if it could not be
done. A stream that was cut short is refused by whoever reads it.`,
		Example: `  scanode export /var/lib/scanode/0 rows.scanode
  scanode export /var/lib/scanode/0 - | zstd > rows.scanode.zst`,
		Args: usage(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runExport(cmd.OutOrStdout(), cmd.ErrOrStderr(), args[0], args[1], f)
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &exitError{exitUsage, err} })
	f.register(cmd.Flags())
	return cmd
}

func runExport(out, errOut io.Writer, dir, to string, f memoryFlags) error {
	memory, err := f.plan()
	if err != nil {
		return &exitError{exitUsage, err}
	}
	limitHeap(memory)
	sum, err := export(out, dir, to, f)
	if err != nil {
		return importError(err)
	}
	fmt.Fprintf(errOut, "exported %s: %v\n", dir, sum)
	return nil
}

// export opens the store and the file.
func export(out io.Writer, dir, to string, f memoryFlags) (sum dump.Sum, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return sum, err
	}
	name, err := engineOf(dir)
	if err != nil {
		return sum, err
	}
	engine, err := newOneStore(name, f)
	if err != nil {
		return sum, err
	}
	defer engine.end()
	store, err := engine.Open(dir, storage.Options{})
	if err != nil {
		return sum, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if to == "-" {
		return exportRows(out, store, name)
	}
	file, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return sum, err
	}
	sum, err = exportRows(file, store, name)
	if err == nil {
		err = file.Sync()
	}
	return sum, errors.Join(err, file.Close())
}

// writtenIter is an iterator of an engine that knows when rows were written.
type writtenIter interface {
	Written() uint64 // microseconds since 1970; 0 is unknown
}

func exportRows(out io.Writer, store storage.Store, engine string) (sum dump.Sum, err error) {
	buffered := bufio.NewWriterSize(out, streamBuffer)
	w, err := dump.NewWriter(buffered, etf.Map{{Key: []byte("engine"), Value: []byte(engine)}})
	if err != nil {
		return sum, err
	}
	it, err := store.NewIter(storage.Range{})
	if err != nil {
		return sum, err
	}
	timed, _ := it.(writtenIter)
	for ok := it.First(); ok; ok = it.Next() {
		value, written := it.Value(), uint64(0)
		if timed != nil {
			written = timed.Written()
		}
		if err := w.Add(it.Key(), value, written); err != nil {
			return sum, errors.Join(err, it.Close())
		}
	}
	if err := it.Close(); err != nil {
		return sum, err
	}
	if sum, err = w.End(); err != nil {
		return sum, err
	}
	return sum, buffered.Flush()
}
