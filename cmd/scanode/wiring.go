package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"scanode/server"
	"scanode/storage"
	"scanode/storage/lsm"
)

// closeWithin is how long flushing and closing may take at the end; a
// supervisor that waits longer than this sees the program gone.
const closeWithin = 9 * time.Second

var engineLevels = map[lsm.Level]slog.Level{
	lsm.LevelInfo:  slog.LevelDebug, // flushes and compactions: many
	lsm.LevelError: slog.LevelError,
	lsm.LevelFatal: slog.LevelError,
}

// defaultCacheMiB is the block cache that all stores share, unless a flag says
// otherwise. It lives on Go's heap, which may grow to twice its size.
const defaultCacheMiB = 256

// cacheFlag adds --cache-mib.
func cacheFlag(fs *pflag.FlagSet, cacheMiB *int64) {
	fs.Int64Var(cacheMiB, "cache-mib", defaultCacheMiB, "MiB of table blocks kept in memory, for all stores together")
}

// checkCache refuses what --cache-mib cannot mean.
func checkCache(cacheMiB int64) error {
	const maxMiB = 1 << 20
	if cacheMiB < 1 || cacheMiB > maxMiB {
		return fmt.Errorf("--cache-mib %d: not within 1 and %d", cacheMiB, maxMiB)
	}
	return nil
}

// newServer returns a server with all engines. Its close ends both.
func newServer(log *slog.Logger, cacheMiB int64, resolve func(string) (string, error)) (s *server.Server, closeAll func() error) {
	engine := lsm.New(lsm.Config{CacheBytes: cacheMiB << 20, Logger: func(level lsm.Level, msg string) {
		log.Log(context.Background(), engineLevels[level], msg)
	}})
	s = server.New(server.Config{
		Version: version,
		Engines: map[string]storage.Engine{"lsm": engine},
		Resolve: resolve,
		Limits:  server.DefaultLimits,
		Logger:  log,
	})
	return s, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			return err
		}
		engine.Close()
		return nil
	}
}

// stopSignals returns a channel that is closed at the first SIGTERM or SIGINT; a
// second one ends the process at once.
func stopSignals() <-chan struct{} {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	stop := make(chan struct{})
	go func() {
		<-signals
		close(stop)
		<-signals
		os.Exit(1)
	}()
	return stop
}
