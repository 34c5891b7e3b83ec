package storetest_test

import (
	"context"
	"math"
	"testing"

	"fanfare.dev/fanfare/internal/store"
)

// The contract is tested through statements of a day: blobs under a number are
// the manifests, rows of all kinds of values the attempts.

// An attempt is a row of ten columns.
type attempt struct {
	manifest, position, attempt, state, code, at, next int64
	text, relay, address                               string
}

func (a *attempt) bind(to store.Values) {
	for _, n := range []int64{a.manifest, a.position, a.attempt, a.state, a.code, a.at, a.next} {
		to.Int64(n)
	}
	for _, s := range []string{a.text, a.relay, a.address} {
		to.Text(s)
	}
}

func insertAttempts(s store.Session, rows ...attempt) error {
	return s.Insert("attempts_insert", len(rows), func(i int, to store.Values) { rows[i].bind(to) })
}

// attempts reads all rows of a manifest.
func attempts(s store.Session, manifest int64) (rows []attempt, err error) {
	err = s.Each("attempts", func(r store.Row) error {
		rows = append(rows, attempt{manifest, r.Int64(0), r.Int64(1), r.Int64(2), r.Int64(3), r.Int64(4), r.Int64(5), r.Text(6), r.Text(7), r.Text(8)})
		return nil
	}, manifest, int64(0), int64(math.MaxUint32))
	return rows, err
}

// putBlobs keeps the same blob under numbers.
func putBlobs(s store.Session, blob []byte, numbers ...int64) error {
	return s.Insert("manifest_insert", len(numbers), func(i int, to store.Values) {
		to.Int64(numbers[i])
		to.Bytes(blob)
	})
}

// numbers lists the numbers of blobs.
func numbers(s store.Session) (list []int64, err error) {
	err = s.Each("manifests_of_event", func(r store.Row) error {
		list = append(list, r.Int64(0))
		return nil
	}, int64(0), int64(1)<<62)
	return list, err
}

// keptNumbers lists the numbers of blobs that a part keeps.
func keptNumbers(t testing.TB, part store.Part) (list []int64) {
	t.Helper()
	read(t, part, func(s store.Session) (err error) {
		list, err = numbers(s)
		return err
	})
	return list
}

func write(t testing.TB, part store.Part, fn func(store.Session) error) {
	t.Helper()
	if err := part.Write(context.Background(), fn); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, part store.Part, fn func(store.Session) error) {
	t.Helper()
	if err := part.Read(context.Background(), fn); err != nil {
		t.Fatal(err)
	}
}
