package process

import (
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/pprof"
	"syscall"
)

// ProfileOnSignal writes a CPU profile of the time between two SIGUSR1 to a
// file. It does nothing without a path. The returned function ends it.
func ProfileOnSignal(path string, log *slog.Logger) (stop func() error, err error) {
	if path == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("FANFARE_CPUPROFILE: %w", err)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for running := false; ; running = !running {
			if _, open := <-signals; !open {
				return
			}
			if running {
				pprof.StopCPUProfile()
				continue
			}
			if err := pprof.StartCPUProfile(f); err != nil {
				log.Warn("cannot start the CPU profile", "error", err)
			}
		}
	}()
	return func() error {
		signal.Stop(signals)
		close(signals)
		<-done
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}
