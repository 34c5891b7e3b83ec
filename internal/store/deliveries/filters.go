package deliveries

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/checksum"
	"fanfare.dev/fanfare/internal/store"
)

// A FilterAnswer is the answer of a filter for a member of a manifest. The numbers are stored.
type FilterAnswer byte

// The answers.
const (
	FilterKeeps   FilterAnswer = 0
	FilterRemoves FilterAnswer = 1
	FilterFailed  FilterAnswer = 2
)

const filterAnswerBits = 2

var errFilterAnswers = errors.New("the stored answers of a filter are damaged")

// FilterAnswers are the answers of filters for deliveries of one day.
type FilterAnswers map[fanfare.DeliveryRef]FilterAnswer

// FilterAnswers returns the stored answers for deliveries of a day. It may return answers for others, too.
func (s *Store) FilterAnswers(ctx context.Context, of fanfare.Day, refs []fanfare.DeliveryRef) (answers FilterAnswers, err error) {
	groups := byManifest(refs)
	err = s.read(ctx, of, func(in store.Session) error {
		answers = FilterAnswers{}
		return readFilterAnswers(in, of, groups, answers)
	})
	return answers, err
}

// KeepFilterAnswers stores answers for deliveries of a day in one transaction, and returns the stored ones. An answer that
// exists already is not changed.
func (s *Store) KeepFilterAnswers(ctx context.Context, of fanfare.Day, answers FilterAnswers) (stored FilterAnswers, err error) {
	refs := make([]fanfare.DeliveryRef, 0, len(answers))
	for ref := range answers {
		refs = append(refs, ref)
	}
	groups := byManifest(refs)
	err = s.write(ctx, of, func(in store.Session) error {
		stored = FilterAnswers{}
		if err := readFilterAnswers(in, of, groups, stored); err != nil {
			return err
		}
		var rows [][]fanfare.DeliveryRef
		for _, group := range groups {
			group = slices.DeleteFunc(slices.Clone(group), func(ref fanfare.DeliveryRef) bool {
				_, known := stored[ref]
				return known
			})
			if len(group) > 0 {
				rows = append(rows, group)
			}
		}
		err := in.Insert("filter_answers_insert", len(rows), func(i int, to store.Values) {
			row := rows[i]
			to.Int64(int64(row[0].Manifest))
			to.Int64(int64(row[0].Position))
			to.Int64(int64(row[len(row)-1].Position))
			to.Bytes(checksum.Add(int64(row[0].Manifest), appendFilterAnswers(nil, row, answers)))
		})
		for _, row := range rows {
			for _, ref := range row {
				stored[ref] = answers[ref]
			}
		}
		return err
	})
	return stored, err
}

// byManifest returns deliveries in groups of one manifest, each in the order of the positions.
func byManifest(refs []fanfare.DeliveryRef) (groups [][]fanfare.DeliveryRef) {
	refs = slices.SortedFunc(slices.Values(refs), func(a, b fanfare.DeliveryRef) int {
		return cmp.Or(cmp.Compare(a.Manifest, b.Manifest), cmp.Compare(a.Position, b.Position))
	})
	for i, ref := range refs {
		if i == 0 || ref.Manifest != refs[i-1].Manifest {
			groups = append(groups, nil)
		}
		last := len(groups) - 1
		groups[last] = append(groups[last], ref)
	}
	return groups
}

func readFilterAnswers(in store.Session, of fanfare.Day, groups [][]fanfare.DeliveryRef, into FilterAnswers) error {
	return in.EachOf("filter_answers", len(groups), func(i int) []any {
		group := groups[i]
		return []any{int64(group[0].Manifest), int64(group[0].Position), int64(group[len(group)-1].Position) + 1}
	}, func(i int, r store.Row) error {
		ref := fanfare.DeliveryRef{Day: of, Manifest: groups[i][0].Manifest}
		err := eachFilterAnswer(ref.Manifest, r.Bytes(0), uint32(r.Int64(1)), uint32(r.Int64(2)), func(position uint32, answer FilterAnswer) {
			ref.Position = position
			into[ref] = answer
		})
		if err != nil {
			return checksum.Damaged(fmt.Sprintf("a list of answers of a filter for the event %s", fanfare.EventRef{Day: of, Seq: ref.Manifest.Event()}))
		}
		return nil
	})
}

// eachFilterAnswer visits the answers of a row for the positions from first to last.
func eachFilterAnswer(manifest fanfare.ManifestID, stored []byte, first, last uint32, visit func(uint32, FilterAnswer)) error {
	b, valid := checksum.Verify(int64(manifest), stored)
	if !valid {
		return errFilterAnswers
	}
	position := uint32(0)
	for begin := true; len(b) > 0; begin = false {
		v, n := binary.Uvarint(b)
		if n <= 0 || n > 1 && b[n-1] == 0 {
			return errFilterAnswers
		}
		b = b[n:]
		if position += uint32(v >> filterAnswerBits); begin && position != first {
			return errFilterAnswers
		}
		visit(position, FilterAnswer(v&(1<<filterAnswerBits-1)))
	}
	if position != last {
		return errFilterAnswers
	}
	return nil
}

// appendFilterAnswers appends the answers for members of one manifest: for each the difference of its position to the one
// before, and the answer in the low bits.
func appendFilterAnswers(b []byte, members []fanfare.DeliveryRef, answers FilterAnswers) []byte {
	var before uint32
	for _, ref := range members {
		b = binary.AppendUvarint(b, uint64(ref.Position-before)<<filterAnswerBits|uint64(answers[ref]))
		before = ref.Position
	}
	return b
}
