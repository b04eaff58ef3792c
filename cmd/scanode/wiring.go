package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"scanode/server"
	"scanode/storage"
	"scanode/storage/couch"
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

// newServer returns a server with all engines. Its close ends both.
func newServer(log *slog.Logger, memory memoryFlags, resolve func(string) (string, error)) (s *server.Server, closeAll func() error) {
	cfg := memory.engineConfig()
	cfg.Logger = func(level lsm.Level, msg string) { log.Log(context.Background(), engineLevels[level], msg) }
	engine := lsm.New(cfg)
	trees := couch.New(couch.Config{Logger: func(level slog.Level, msg string) { log.Log(context.Background(), level, msg) }})
	s = server.New(server.Config{
		Version: version,
		Engines: map[string]storage.Engine{lsm.Name: engine, couch.Name: trees},
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
