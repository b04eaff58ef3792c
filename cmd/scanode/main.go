// Command scanode is a storage and scan node for Erlang systems.
//
// This package holds flags and wiring: it joins a transport (package port or
// node) to the server and an engine to both. One file per sub-command.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

func main() {
	root := &cobra.Command{
		Use:           "scanode",
		Short:         "A storage and scan node for Erlang systems",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(portCommand(), serveCommand(), checkCommand(), salvageCommand(), importCommand(), exportCommand(), versionCommand())
	err := root.Execute()
	var exit *exitError
	switch {
	case errors.As(err, &exit):
		if exit.err != nil {
			fmt.Fprintln(os.Stderr, "scanode:", exit.err)
		}
		os.Exit(exit.status)
	case err != nil:
		fmt.Fprintln(os.Stderr, "scanode:", err)
		os.Exit(1)
	}
}
