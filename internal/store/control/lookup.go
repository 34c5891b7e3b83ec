package control

import (
	"strconv"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

const (
	// placesPerLookup is how many places one statement looks up.
	placesPerLookup = 256
	// denseFactor is the density from which a range is read as a whole: if at least one row in denseFactor is wanted, reading all and skipping
	// is faster than looking up each.
	denseFactor = 8
	// fewPlaces is the number of places from which one statement for many is faster than one for each.
	fewPlaces = 12
)

// A table names the statements that read all rows, a range, or the rows at given places.
type table struct{ all, between, at string }

var (
	subscribers   = table{"subscribers", "subscribers_between", "subscribers_at"}
	subscriptions = table{"subscriptions", "subscriptions_between", "subscriptions_at"}
)

// lookup visits the rows at places, which must be sorted.
func (t table) lookup(s store.Session, places []fanfare.RowID, visit func(store.Row) error) error {
	for len(places) > 0 {
		n := denseRun(places)
		var err error
		if n > 0 {
			err = t.lookupRange(s, places[:n], visit)
		} else {
			n = min(placesPerLookup, len(places))
			err = s.Each(t.at, visit, list(places[:n]))
		}
		if err != nil {
			return err
		}
		places = places[n:]
	}
	return nil
}

// denseRun returns how many of the first places should be read as a range, because they are close together or are the last few. 0 means none.
func denseRun(places []fanfare.RowID) int {
	n := 1
	for n < len(places) && places[n]-places[0] <= fanfare.RowID(denseFactor*n) {
		n++
	}
	if n < fewPlaces && len(places) > fewPlaces {
		return 0
	}
	return n
}

func (t table) lookupRange(s store.Session, places []fanfare.RowID, visit func(store.Row) error) error {
	i := 0
	first, last := int64(places[0]), int64(places[len(places)-1])
	return s.Each(t.between, func(r store.Row) error {
		place := fanfare.RowID(r.Int64(0))
		for i < len(places) && places[i] < place {
			i++
		}
		if i == len(places) || places[i] != place {
			return nil
		}
		return visit(r)
	}, first, last, last-first+1)
}

// list returns places as a JSON array.
func list(places []fanfare.RowID) string {
	b := make([]byte, 0, 11*len(places)+2)
	for _, p := range places {
		b = strconv.AppendUint(append(b, ','), uint64(p), 10)
	}
	b[0] = '['
	return asString(append(b, ']'))
}
