package e2e

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/test/pgtest"
)

// Every response comes exactly once, and no request of a session that runs requests at most once runs twice, while the server,
// workers and clients are killed at random moments. FANFARE_KILLS sets the number of kills; the load grows with it.
func TestKillsLoseNoRequestOfADurableSession(t *testing.T) {
	t.Parallel()
	kills, requests := 12, 6000
	if text := os.Getenv("FANFARE_KILLS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("FANFARE_KILLS is %q: it must be the number of kills", text)
		}
		kills, requests = n, 1000*n
	}
	s := serve(t, "--listen", pgtest.Address(t), "--durability", "fsync")
	s.mustRun("service: bank\nworkers:\n  pricing: {concurrency: 8, timeout: 60s}\n", "apply", "-f", "-")
	load := startLoggedLoad(t, s.library(t), s.url, s.key, requests, 25*time.Millisecond)
	seed := rand.Uint64()
	t.Logf("seed %d, %d kills, %d requests", seed, kills, requests)
	random := rand.New(rand.NewPCG(seed, 1))
	underLoad := 0
	for range kills {
		<-time.After(time.Duration(random.IntN(900)) * time.Millisecond)
		if load.responses() < requests*9/10-30 {
			underLoad++
		}
		switch random.IntN(3) {
		case 0:
			s.kill()
			s.start()
		case 1:
			load.instances[random.IntN(len(load.instances))].killAndBegin()
		case 2:
			load.streams[random.IntN(len(load.streams))].killAndBegin()
		}
	}
	t.Logf("%d of %d kills came while requests waited", underLoad, kills)
	load.finish(s.library(t))
}
