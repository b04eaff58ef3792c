package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"scanode/storage/couch/check"
)

// Exit statuses of check and salvage.
const (
	exitDamaged = 1
	exitUsage   = 2 // also: a file could not be read
)

// exitError is an error that ends the program with a status of its own. What there
// is to say may have been said already: then Err is nil.
type exitError struct {
	status int
	err    error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.status)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

type checkFlags struct {
	json, conflicts bool
	at, headers     int
	chunkSize       int
	temp            string
}

func checkCommand() *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use:   "check FILE…",
		Short: "Look at CouchDB's files, and at ours of the same kind",
		Long: `Look at databases (.couch), views (.view), files of compactions (.compact, .data,
.meta) and files of trees of other programs: headers, trees, documents, bodies,
attachments, and what every byte is used for. Of directories, all files with these
names are looked at, and all in directories named .delete. Nothing is written to
what is looked at; a file that is in use may be looked at as well.

The exit status is 0 if nothing is wrong, 1 if a file is damaged, 2 if a file could
not be read or the command line is wrong.`,
		Example: `  scanode check /var/lib/couchdb/shards
  scanode check --json db.couch
  scanode check --headers=-1 --at 3 db.couch`,
		Args: usage(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runCheck(cmd.OutOrStdout(), cmd.ErrOrStderr(), args, f)
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &exitError{exitUsage, err} })
	fs := cmd.Flags()
	fs.BoolVar(&f.json, "json", false, "print one JSON object: files, and the summary of them")
	fs.IntVar(&f.at, "at", 0, "look at an older header: 0 is the newest, 1 the one before, and so on")
	fs.IntVar(&f.headers, "headers", 5, "how many of the newest headers to list; -1 is all")
	fs.BoolVar(&f.conflicts, "conflicts", false, "list the documents with conflicts, at most 10000 a file")
	fs.IntVar(&f.chunkSize, "chunk-size", 1279, "what fill is measured by, in bytes (couchdb/btree_chunk_size)")
	fs.StringVar(&f.temp, "temp", "", "directory for temporary files: 24 bytes for each node, body and document\nbeyond a million of them (default the system's)")
	return cmd
}

// usage gives errors of args their exit status.
func usage(args cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, a []string) error {
		if err := args(cmd, a); err != nil {
			return &exitError{exitUsage, err}
		}
		return nil
	}
}

// maxConflicted is how many documents --conflicts lists.
const maxConflicted = 10000

func runCheck(out, errOut io.Writer, args []string, f checkFlags) error {
	if f.at < 0 || f.headers < -1 || f.chunkSize < 1 {
		return &exitError{exitUsage, errors.New("--at and --chunk-size must be positive, --headers too or -1")}
	}
	o := check.Options{Generation: f.at, Headers: f.headers, ChunkSize: f.chunkSize, TempDir: f.temp}
	if f.headers < 0 {
		o.Headers = math.MaxInt
	}
	if f.conflicts {
		o.Conflicts = maxConflicted
	}
	p := &reports{out: out, json: f.json}
	status := 0
	for _, arg := range args {
		err := checkable(arg, func(name string) error {
			bar := newBar(errOut, name)
			o.Progress = bar.show
			r, err := check.File(vfs.Default, name, o)
			bar.clear()
			if err != nil {
				return err
			}
			return p.print(r)
		}, func(err error) {
			status = exitUsage
			fmt.Fprintln(errOut, "scanode:", err)
		})
		if err != nil {
			return err
		}
	}
	if err := p.end(status == 0); err != nil {
		return err
	}
	if status == 0 && p.sum.Damaged > 0 {
		status = exitDamaged
	}
	if status != 0 {
		return &exitError{status, nil}
	}
	return nil
}

// checkable calls look for the file arg, or for all in the directory arg that may be
// looked at. It calls failed with errors of files and goes on. An error of writing
// output ends it.
func checkable(arg string, look func(name string) error, failed func(error)) error {
	one := func(name string) error {
		err := look(name)
		var w *outputError
		if errors.As(err, &w) {
			return err
		}
		if err != nil {
			failed(err)
		}
		return nil
	}
	info, err := os.Stat(arg)
	if err != nil {
		failed(err)
		return nil
	}
	if !info.IsDir() {
		return one(arg)
	}
	// Of a link WalkDir would say nothing at all, and of what lies behind one neither.
	// A file that is linked to is looked at, a directory only when it is named: links may
	// lead in a circle.
	root := filepath.Clean(arg) + string(filepath.Separator)
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			failed(err)
			return nil
		case d.IsDir() || !isCouchName(path):
			return nil
		case d.Type()&fs.ModeSymlink != 0:
			info, err := os.Stat(path)
			if err != nil {
				failed(err)
			}
			if err != nil || !info.Mode().IsRegular() {
				return nil
			}
		case !d.Type().IsRegular():
			return nil
		}
		return one(path)
	})
}

// isCouchName says whether a file of this name is looked at when its directory is.
func isCouchName(path string) bool {
	switch filepath.Ext(path) {
	case ".couch", ".view", ".compact", ".delete":
		return true
	case ".data", ".meta":
		return strings.Contains(filepath.Base(path), ".compact.")
	}
	return filepath.Base(filepath.Dir(path)) == ".delete"
}

// outputError is an error of writing to standard output.
type outputError struct{ err error }

func (e *outputError) Error() string { return e.err.Error() }
func (e *outputError) Unwrap() error { return e.err }

// reports prints reports as they come: a directory may have many files.
type reports struct {
	out   io.Writer
	json  bool
	count int
	sum   check.Summary
}

func (p *reports) print(r *check.Report) error {
	p.count++
	p.sum.Add(r)
	if !p.json {
		if err := r.WriteText(p.out); err != nil {
			return &outputError{err}
		}
		return nil
	}
	lead := ",\n"
	if p.count == 1 {
		lead = "{\"files\": [\n"
	}
	b, err := json.Marshal(r)
	if err == nil {
		_, err = fmt.Fprintf(p.out, "%s%s", lead, b)
	}
	if err != nil {
		return &outputError{err}
	}
	return nil
}

// end prints the summary. whole says that all was looked at that there is: then it is said
// too that there was no file, for the directory may be the wrong one.
func (p *reports) end(whole bool) error {
	if !p.json {
		if p.count > 1 || p.count == 0 && whole {
			return p.sum.WriteText(p.out)
		}
		return nil
	}
	lead := "\n],"
	if p.count == 0 {
		lead = "{\"files\": [],"
	}
	b, err := json.Marshal(p.sum)
	if err == nil {
		_, err = fmt.Fprintf(p.out, "%s\n\"summary\": %s}\n", lead, b)
	}
	return err
}

// bar shows progress on a terminal, and nothing anywhere else.
type bar struct {
	name  string
	phase string
	out   *os.File // nil: show nothing
	bar   *progressbar.ProgressBar
}

func newBar(out io.Writer, name string) *bar {
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		file = nil
	}
	return &bar{name: filepath.Base(name), out: file}
}

func (b *bar) show(phase string, done, total int64) {
	if b.out == nil {
		return
	}
	if phase != b.phase {
		b.clear()
		b.phase = phase
		b.bar = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(b.out),
			progressbar.OptionSetDescription(b.name+": "+phase),
			progressbar.OptionShowBytes(true),
			progressbar.OptionClearOnFinish(),
			progressbar.OptionThrottle(200*time.Millisecond),
		)
	}
	// A terminal that is gone must not end the check.
	_ = b.bar.Set64(min(done, total))
}

func (b *bar) clear() {
	if b.bar != nil {
		_ = b.bar.Clear()
	}
	b.bar = nil
}
