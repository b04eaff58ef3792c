package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// version is the release. The Erlang application refuses a program whose version
// is not its own, so src/scanode.app.src has the same; a test compares them.
const version = "0.1.0"

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintln(cmd.OutOrStdout(), "scanode", version)
		},
	}
}
