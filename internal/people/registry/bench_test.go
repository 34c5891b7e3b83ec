package registry_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/store/storetest"
)

func sharedPuts(from, n int) []people.SubscriptionPut {
	puts := make([]people.SubscriptionPut, n)
	for i := range puts {
		puts[i] = people.SubscriptionPut{Topic: "change", Channel: "email", To: fmt.Sprintf("person%d@example.com", from+i), Filter: sharedFilter,
			Data: json.RawMessage(fmt.Sprintf(`{"name":"Person %d","links":["https://example.org/a/%d"]}`, from+i, from+i))}
	}
	return puts
}

// importAll puts all in slices from several goroutines at once.
func importAll(tb testing.TB, r *registry.Registry, puts []people.SubscriptionPut, slice, callers int) {
	tb.Helper()
	importAs(context.Background(), tb, r, puts, slice, callers)
}

func importAs(ctx context.Context, tb testing.TB, r *registry.Registry, puts []people.SubscriptionPut, slice, callers int) {
	next := make(chan []people.SubscriptionPut, len(puts)/slice+1)
	for from := 0; from < len(puts); from += slice {
		next <- puts[from:min(from+slice, len(puts))]
	}
	close(next)
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			results := make([]people.PutResult, slice)
			for part := range next {
				if err := r.PutSubscriptions(ctx, "notify", part, results[:len(part)]); err != nil {
					tb.Error(err)
					return
				}
				for i := range part {
					if results[i].Err != nil {
						tb.Error(results[i].Err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkImport puts subscriptions in slices of 5,000 from two goroutines.
func BenchmarkImport(b *testing.B) {
	r, _ := openAt(b, storetest.Place(b))
	apply(b, r, weather)
	puts := sharedPuts(0, b.N)
	b.ResetTimer()
	importAll(b, r, puts, 5000, 2)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "subscriptions/s")
}

// BenchmarkImportRules is BenchmarkImport with a rule and different params for each subscription.
func BenchmarkImportRules(b *testing.B) {
	r, _ := openAt(b, storetest.Place(b))
	apply(b, r, weather)
	puts := sharedPuts(0, b.N)
	for i := range puts {
		puts[i].Filter, puts[i].Rule = "", "near"
		puts[i].Params = json.RawMessage(fmt.Sprintf(`{"min_mag":%d.5,"place":"place %d"}`, i%7, i%1000))
	}
	b.ResetTimer()
	importAll(b, r, puts, 5000, 2)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "subscriptions/s")
}

// BenchmarkSinglePuts puts one subscription per call from 50 goroutines, with and without
// an audit entry for each.
func BenchmarkSinglePuts(b *testing.B) {
	noted := audit.WithActor(b.Context(), audit.Actor{KeyID: "key-7", KeyName: "website", Request: "0123456789abcdef"})
	for name, ctx := range map[string]context.Context{"noted": noted, "unnoted": b.Context()} {
		b.Run(name, func(b *testing.B) {
			r, _ := openAt(b, storetest.Place(b))
			apply(b, r, weather)
			puts := sharedPuts(0, b.N)
			b.ResetTimer()
			importAs(ctx, b, r, puts, 1, 50)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "subscriptions/s")
		})
	}
}

// BenchmarkOpen loads what BenchmarkImport stored.
func BenchmarkOpen(b *testing.B) {
	const n = 1_000_000
	place := storetest.Place(b)
	r, _ := openAt(b, place)
	apply(b, r, weather)
	for from := 0; from < n; from += 100_000 {
		importAll(b, r, sharedPuts(from, 100_000), 5000, 2)
	}
	r.Close()
	for b.Loop() {
		r, index := openAt(b, place)
		b.StopTimer()
		if got := index.Len(condition.Key{Service: "notify", Topic: "change"}); got != n {
			b.Fatalf("the index has %d", got)
		}
		r.Close()
		b.StartTimer()
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "subscriptions/s")
}

// BenchmarkImportWaiting is BenchmarkImport with a cadence in twelve time zones.
func BenchmarkImportWaiting(b *testing.B) {
	r, _ := openAt(b, storetest.Place(b))
	apply(b, r, waiting)
	puts := sharedPuts(0, b.N)
	for i := range puts {
		puts[i].Cadence, puts[i].TimeZone = "daily 08:00", fmt.Sprintf("Etc/GMT+%d", i%12)
	}
	b.ResetTimer()
	importAll(b, r, puts, 5000, 2)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "subscriptions/s")
}
