package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"scanode/storage"
	"scanode/storage/dump"
	"scanode/storage/lsm"
	"scanode/storage/transfer"
)

type importFlags struct {
	memoryFlags
	options     optionFlags
	engine      string
	tiers       []string
	expiry      bool
	force       bool
	skipDamaged bool
	restart     bool
	dryRun      bool
	json        bool
	verbose     bool
	syncMiB     float64
}

func importCommand() *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   "import FROM TARGET",
		Short: "Bring the rows of a LevelDB directory, or a stream of rows, into a new store",
		Long: `Bring rows into a new store at TARGET, which must not exist or be empty.

FROM is a directory of LevelDB's, the stock one or eleveldb's (Basho's), which must be
closed and is only read; or a file that "scanode export" has written; or - for such a
stream on standard input.

While it is under way the new store lies in TARGET.importing. Interrupted or killed at any
moment, the same command goes on where the last sync was. At the end the new store is read
from end to end and compared with what was read, and only then put at TARGET.

The exit status is 0 if all was brought over, 1 if something was left out, is damaged or
does not compare, 2 if it could not be done or was stopped.`,
		Example: `  scanode import /var/lib/riak/leveldb/0 /var/lib/scanode/0
  scanode import --tier /slow/var/lib/riak/leveldb/0 /fast/var/lib/riak/leveldb/0 /var/lib/scanode/0
  scanode import --dry-run /var/lib/riak/leveldb/0
  ssh db1 scanode export /var/lib/scanode/0 - | scanode import - /var/lib/scanode/0`,
		Args: usage(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runImport(cmd.OutOrStdout(), cmd.ErrOrStderr(), args, &f)
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &exitError{exitUsage, err} })
	fs := cmd.Flags()
	f.register(fs)
	f.options.register(fs)
	fs.StringVar(&f.engine, "engine", lsm.Name, "engine of the new store: lsm or couch")
	fs.StringArrayVar(&f.tiers, "tier", nil, "the other `directory` of a store with tiered storage")
	fs.BoolVar(&f.expiry, "expiry", false, "make a store whose rows can expire: they keep the times of their writing, and those\nwhose own time has come are left out")
	fs.BoolVar(&f.force, "force", false, "read even while another process has FROM open, or LOCK cannot be looked at")
	fs.BoolVar(&f.skipDamaged, "skip-damaged", false, "leave out what cannot be read, and list it. Older versions of rows may then show,\nand rows that were deleted")
	fs.BoolVar(&f.restart, "restart", false, "begin anew instead of going on")
	fs.BoolVar(&f.dryRun, "dry-run", false, "only read FROM and say what is in it")
	fs.BoolVar(&f.json, "json", false, "print the result as a JSON object")
	fs.BoolVar(&f.verbose, "verbose", false, "print a line to standard error at each sync")
	fs.Float64Var(&f.syncMiB, "sync-mib", 64, "`MiB` of rows between two syncs: what an interruption costs")
	return cmd
}

// origin is where rows come from: a source, and what is known of it.
type origin interface {
	transfer.Source
	name() string               // by which another run knows it again
	progress() (done, of int64) // in bytes, for people
	dirs() []string             // in which nothing may be written
	report(r *importReport)
	Close() error
}

func runImport(out, errOut io.Writer, args []string, f *importFlags) error {
	if len(args) == 2 == f.dryRun && len(args) != 1 || len(args) == 1 && !f.dryRun {
		return &exitError{exitUsage, errors.New("give FROM and TARGET, or FROM and --dry-run")}
	}
	if !(f.syncMiB > 0 && f.syncMiB <= 1<<20) {
		return &exitError{exitUsage, fmt.Errorf("--sync-mib %v: not above 0 and up to 1048576", f.syncMiB)}
	}
	memory, err := f.plan()
	if err != nil {
		return &exitError{exitUsage, err}
	}
	limitHeap(memory)
	from, err := openOrigin(args[0], f, func(text string) { fmt.Fprintln(errOut, "scanode: left out:", text) })
	if err != nil {
		return importError(err)
	}
	report := importReport{From: args[0]}
	if f.dryRun {
		err = count(from, &report, newBar(errOut, args[0]))
	} else {
		report.Target = args[1]
		err = bring(from, args[1], f, &report, errOut)
	}
	if errors.Is(err, transfer.ErrStopped) {
		return &exitError{exitUsage, fmt.Errorf("%w: the same command goes on", err)}
	}
	from.report(&report)
	if cerr := from.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return importError(err)
	}
	if err := report.print(out, f.json); err != nil {
		return &exitError{exitUsage, err}
	}
	if report.Skipped > 0 {
		return &exitError{exitDamaged, nil}
	}
	return nil
}

// importError gives an error its exit status.
func importError(err error) error {
	status := exitUsage
	if errors.Is(err, storage.ErrCorrupt) || errors.Is(err, transfer.ErrDiffers) {
		status = exitDamaged
	}
	return &exitError{status, err}
}

// count reads all rows.
func count(from origin, report *importReport, bar *bar) error {
	defer bar.clear()
	for from.Next() {
		report.Sum.Add(from.Key(), from.Value())
		if report.Sum.Rows%(1<<16) == 0 {
			done, of := from.progress()
			bar.show("reading", done, of)
		}
	}
	report.Skipped = from.Skipped()
	return from.Err()
}

// bring brings all rows into a new store at target.
func bring(from origin, target string, f *importFlags, report *importReport, errOut io.Writer) error {
	options, err := f.options.parse()
	if err != nil {
		return err
	}
	if f.expiry {
		options["expiry_enabled"] = true
	}
	engine, err := newOneStore(f.engine, f.memoryFlags)
	if err != nil {
		return err
	}
	defer engine.end()
	bar := newBar(errOut, target)
	defer bar.clear()
	stop := stopSignals()
	begun := time.Now()
	result, err := transfer.Run(transfer.Config{
		Source: &shown{origin: from, bar: bar}, Origin: from.name(), Target: target, Outside: from.dirs(),
		Engine: engine, Name: engine.name, Options: options, Restart: f.restart,
		SyncBytes: int64(f.syncMiB * (1 << 20)), Stop: stop,
		Phase: bar.show,
		Synced: func(sum dump.Sum) {
			if f.verbose {
				fmt.Fprintf(errOut, "scanode: durable: %v\n", sum)
			}
		},
		Resumed: func(since time.Time, sum dump.Sum) {
			fmt.Fprintf(errOut, "scanode: going on with the import begun at %s, behind %d rows\n", since.Format(time.RFC3339), sum.Rows)
		},
	})
	report.Sum, report.Skipped, report.Resumed = result.Sum, result.Skipped, result.Resumed
	report.Seconds = time.Since(begun).Seconds()
	return err
}

// shown shows how far a source is. It is used on the reader's goroutine; the bar is
// Run's only after the source has ended.
type shown struct {
	origin
	bar  *bar
	rows int
}

func (s *shown) Next() bool {
	if s.rows++; s.rows%(1<<14) == 0 {
		done, of := s.progress()
		s.bar.show("reading", done, of)
	}
	return s.origin.Next()
}

// importReport is what is printed at the end.
type importReport struct {
	From    string
	Target  string // empty: nothing was written
	Sum     dump.Sum
	Skipped int64
	Resumed bool
	Seconds float64
	Notes   []string
}

// MarshalJSON has the hash of the rows as text: it is more than a number of JSON's.
func (r *importReport) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{
		"from": r.From, "target": r.Target, "rows": r.Sum.Rows, "key_bytes": r.Sum.KeyBytes, "value_bytes": r.Sum.ValueBytes,
		"sum": r.Sum.Hash(), "skipped": r.Skipped, "resumed": r.Resumed, "seconds": r.Seconds, "notes": append([]string{}, r.Notes...),
	})
}

func (r *importReport) print(out io.Writer, asJSON bool) error {
	if asJSON {
		b, err := json.Marshal(r)
		if err == nil {
			_, err = fmt.Fprintf(out, "%s\n", b)
		}
		return err
	}
	lead := "read " + r.From
	if r.Target != "" {
		lead = "brought " + r.From + " to " + r.Target
	}
	text := fmt.Sprintf("%s: %v\n", lead, r.Sum)
	if r.Target != "" {
		text += "read back and compared: the same\n"
	}
	for _, note := range r.Notes {
		text += note + "\n"
	}
	if r.Skipped > 0 {
		text += fmt.Sprintf("left out: %d places that could not be read\n", r.Skipped)
	}
	_, err := io.WriteString(out, text)
	return err
}

// openOrigin finds out what FROM is.
func openOrigin(from string, f *importFlags, leftOut func(string)) (origin, error) {
	if from == "-" {
		return openStream(os.Stdin, "standard input")
	}
	info, err := os.Stat(from)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return openLevelDB(append([]string{from}, f.tiers...), f, leftOut)
	}
	if len(f.tiers) > 0 {
		return nil, errors.New("--tier goes with a directory")
	}
	file, err := os.Open(from)
	if err != nil {
		return nil, err
	}
	abs, err := filepath.Abs(from)
	if err != nil {
		return nil, err
	}
	return openStream(file, fmt.Sprintf("%s (%d bytes, of %s)", abs, info.Size(), info.ModTime().UTC().Format(time.RFC3339Nano)))
}
