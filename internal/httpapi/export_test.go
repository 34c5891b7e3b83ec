package httpapi

import (
	"context"
	"encoding/csv"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
)

// manyParked is a long list, which tests watch while it is read.
type manyParked struct {
	Parking
	n    int
	read func()
}

func (p manyParked) Parked(context.Context) (all []fanfare.Parked, err error) {
	p.read()
	for i := range p.n {
		all = append(all, fanfare.Parked{ID: fmt.Sprintf("prk-20261120-%x", i+1), Kind: "batch", Reason: "=1+1", Event: "evt-1"})
	}
	return all, nil
}

func TestAListAsCSVIsWhole(t *testing.T) {
	a := newWorld().api(func(d *Dependencies) { d.Parking = manyParked{n: 2500, read: func() {}} })
	for _, rec := range []*httptest.ResponseRecorder{ask(t, a, "GET", "/v1/parked?format=csv", ""), ask(t, a, "GET", "/v1/parked", "", "Accept", "application/json;q=0.1, text/csv")} {
		rows, err := csv.NewReader(rec.Body).ReadAll()
		if err != nil || rec.Code != 200 || len(rows) != 2501 || strings.Join(rows[0], " ") != "id kind event reason failures members at" || rows[2500][0] != "prk-20261120-9c4" || rows[1][3] != "'=1+1" {
			t.Fatalf("%d, %d rows: %v", rec.Code, len(rows), err)
		}
		h := rec.Result()
		if got := h.Header.Get("Content-Type"); got != "text/csv; charset=utf-8; header=present" {
			t.Errorf("the type is %s", got)
		}
		if got := h.Header.Get("Content-Disposition"); got != "attachment; filename=parked.csv" {
			t.Errorf("the name is %s", got)
		}
		if got := h.Trailer.Get("Fanfare-Export"); got != "complete" {
			t.Errorf("the trailer is %q", got)
		}
	}
	for target, want := range map[string]int{"/v1/parked?format=json": 200, "/v1/parked?format=xml": 422, "/v1/parked?format=": 422, "/v1/parked?format=csv&format=csv": 422, "/v1/parked?format=csv&limit=5": 422, "/v1/parked?format=csv&other=1": 422, "/v1/status?format=csv": 422} {
		if rec := ask(t, a, "GET", target, ""); rec.Code != want || want == 200 && !strings.Contains(rec.Body.String(), `"parked":[`) {
			t.Errorf("%s: %d %s", target, rec.Code, rec.Body)
		}
	}
}

func TestALongExportIsCutOffAndSaysSo(t *testing.T) {
	now, pages := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), 0
	a := newWorld().api(func(d *Dependencies) {
		d.Now = func() time.Time { return now }
		d.Parking = manyParked{n: 2500, read: func() {
			if pages++; pages == 2 {
				now = now.Add(exportTime)
			}
		}}
	})
	rec := ask(t, a, "GET", "/v1/parked?format=csv", "")
	lines := strings.Split(strings.TrimSpace(rec.Body.String()), "\r\n")
	if last := lines[len(lines)-1]; len(lines) != 2002 || !strings.Contains(last, "# The export was cut off") {
		t.Errorf("%d lines, the last is %s", len(lines), last)
	}
	if got := rec.Result().Trailer.Get("Fanfare-Export"); got != "cut off: it took longer than 10m0s" {
		t.Errorf("the trailer is %q", got)
	}
}

func TestOnlySomeExportsAreWrittenAtOnce(t *testing.T) {
	reached, goOn := make(chan struct{}), make(chan struct{})
	a := newWorld().api(func(d *Dependencies) {
		d.Parking = manyParked{n: 1, read: func() { reached <- struct{}{}; <-goOn }}
	})
	ended := make(chan int)
	for range maxExports {
		go func() { ended <- ask(t, a, "GET", "/v1/parked?format=csv", "").Code }()
	}
	for range maxExports {
		<-reached
	}
	if rec := ask(t, a, "GET", "/v1/parked?format=csv", ""); rec.Code != 503 || rec.Header().Get("Retry-After") == "" {
		t.Errorf("one more: %d %s", rec.Code, rec.Body)
	}
	close(goOn)
	for range maxExports {
		if code := <-ended; code != 200 {
			t.Errorf("an export ended with %d", code)
		}
	}
	go func() { <-reached }()
	if rec := ask(t, a, "GET", "/v1/parked?format=csv", ""); rec.Code != 200 {
		t.Errorf("afterwards: %d %s", rec.Code, rec.Body)
	}
}
