package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/spf13/cobra"

	"scanode/storage/couch/check"
)

type salvageFlags struct {
	json, orphans bool
	at            int
	temp          string
}

func salvageCommand() *cobra.Command {
	var f salvageFlags
	cmd := &cobra.Command{
		Use:   "salvage IN OUT",
		Short: "Copy what can be read of a damaged file of CouchDB's into a new one",
		Long: `Copy what can be read of a database, a view or a file of trees into a new file of the
same kind, which is then looked at as "scanode check" does. IN is only read. OUT must not
exist, or be empty. What could not be read is listed.

Of a database both trees are made anew, from whatever either of them still has. Where the
body of a revision is lost, the nearest older revision with a body takes its place. A
document that lost an attachment is there without it. Without a security object only
admins are let in. A view from which rows are missing gets another signature, so that
CouchDB makes the index anew instead of giving wrong answers.

The exit status is 0 if all was copied, 1 if something is lost, 2 if there is no OUT.`,
		Example: `  scanode salvage broken.couch saved.couch
  scanode salvage --orphans headerless.couch saved.couch`,
		Args: usage(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runSalvage(cmd.OutOrStdout(), cmd.ErrOrStderr(), args[0], args[1], f)
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &exitError{exitUsage, err} })
	fs := cmd.Flags()
	fs.BoolVar(&f.json, "json", false, "print a JSON object")
	fs.BoolVar(&f.orphans, "orphans", false, "also take documents that are only in leaves to which nothing leads; needed\nif there is no header. Brings back what was purged")
	fs.IntVar(&f.at, "at", 0, "copy what an older header leads to: 0 is the newest, 1 the one before, and so on")
	fs.StringVar(&f.temp, "temp", "", "directory for temporary files (default the system's)")
	return cmd
}

func runSalvage(out, errOut io.Writer, from, to string, f salvageFlags) error {
	if f.at < 0 {
		return &exitError{exitUsage, errors.New("--at must not be negative")}
	}
	bar := newBar(errOut, from)
	o := check.SalvageOptions{Orphans: f.orphans, Options: check.Options{Generation: f.at, TempDir: f.temp, Progress: bar.show}}
	r, err := check.Salvage(vfs.Default, from, to, o)
	bar.clear()
	if err != nil {
		return &exitError{exitUsage, err}
	}
	if f.json {
		var b []byte
		if b, err = json.Marshal(r); err == nil {
			_, err = fmt.Fprintf(out, "%s\n", b)
		}
	} else {
		err = r.WriteText(out)
	}
	if err != nil {
		return &exitError{exitUsage, err}
	}
	if r.LostCount > 0 {
		return &exitError{exitDamaged, nil}
	}
	return nil
}
