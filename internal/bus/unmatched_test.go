package bus

import (
	"slices"
	"testing"

	"fanfare.dev/fanfare"
)

func unmatched(t *testing.T, b *Bus) (seqs []uint64) {
	t.Helper()
	err := b.UnmatchedEvents(t.Context(), func(seq uint64, group []byte) error {
		if len(group) == 0 {
			t.Errorf("group %d is empty", seq)
		}
		seqs = append(seqs, seq)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return seqs
}

func TestUnmatchedAreTheGroupsThatNobodyHasFinished(t *testing.T) {
	dir := t.TempDir()
	b := open(t, Options{Dir: dir})
	if got := unmatched(t, b); got != nil {
		t.Errorf("an empty stream: %v", got)
	}
	urgent := appendGroups(t, b, fanfare.Urgent, 3)
	bulk := appendGroups(t, b, fanfare.Bulk, 2)
	if got, want := unmatched(t, b), slices.Concat(urgent, bulk); !slices.Equal(got, want) {
		t.Errorf("before anybody matches: %v, want %v", got, want)
	}
	for lane, n := range map[fanfare.Lane]int{fanfare.Urgent: 2, fanfare.Bulk: 2} {
		q, err := b.Events(t.Context(), lane)
		if err != nil {
			t.Fatal(err)
		}
		for range n {
			l, err := q.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Done(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := b.Events(t.Context(), fanfare.Normal); err != nil {
		t.Fatal(err)
	}
	settled(t, b, Backlog{EventGroups: 1})
	if got := unmatched(t, b); !slices.Equal(got, urgent[2:]) {
		t.Errorf("with all but one done: %v, want %v", got, urgent[2:])
	}
	if next, err := b.NextEvent(t.Context()); err != nil || next != bulk[1]+1 {
		t.Errorf("the next sequence is %d, %v, want %d", next, err, bulk[1]+1)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b = open(t, Options{Dir: dir}) // of a stopped server
	if got := unmatched(t, b); !slices.Equal(got, urgent[2:]) {
		t.Errorf("after a restart: %v, want %v", got, urgent[2:])
	}
}

func TestANewStreamSaysWhereItBegins(t *testing.T) {
	b := open(t, Options{FirstSeq: 1 << 40})
	if next, err := b.NextEvent(t.Context()); err != nil || next != 1<<40 {
		t.Errorf("got %d, %v", next, err)
	}
	if seqs := appendGroups(t, b, fanfare.Normal, 1); seqs[0] != 1<<40 {
		t.Errorf("appended at %d", seqs[0])
	}
}
