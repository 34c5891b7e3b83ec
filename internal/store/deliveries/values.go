package deliveries

import (
	"encoding/binary"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// nanos encodes a time for the database; the zero time is 0.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func timeAt(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// eventManifests are the ids that the manifests of an event lie between, as
// arguments: the first that may be, and the first that may not.
func eventManifests(seq fanfare.EventSeq) []any {
	return []any{int64(fanfare.NewManifestID(seq, 0)), int64(fanfare.NewManifestID(seq+1, 0))}
}

// manifestAt reads the manifest of a row of a day. It fails with a DamagedError.
func manifestAt(of fanfare.Day, r store.Row) (fanfare.Manifest, error) {
	return decodeManifest(of, fanfare.ManifestID(r.Int64(0)), r.Bytes(1))
}

// appendPositions appends ascending positions, each as its difference to the one
// before.
func appendPositions(b []byte, positions []uint32) []byte {
	var before uint32
	for _, p := range positions {
		b = binary.AppendUvarint(b, uint64(p-before))
		before = p
	}
	return b
}

func readPositions(b []byte) []uint32 {
	var positions []uint32
	var before uint32
	for len(b) > 0 {
		delta, n := binary.Uvarint(b)
		if n <= 0 {
			return positions
		}
		before += uint32(delta)
		positions = append(positions, before)
		b = b[n:]
	}
	return positions
}
