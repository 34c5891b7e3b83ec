package deliveries

import (
	"encoding/json"
	"fmt"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/checksum"
)

// postedFirst is the first member of a stored event without a checksum.
const postedFirst = "service"

// encodePosted returns the stored form of an event, with a checksum under its sequence.
func encodePosted(posted *fanfare.AcceptedEvent) ([]byte, error) {
	text, err := json.Marshal(posted)
	if err != nil {
		return nil, err
	}
	return checksum.AddToJSON(int64(posted.Seq), text), nil
}

// decodePosted reads an event, or parts of it, from its stored form. It fails with a DamagedError, and then leaves the event unchanged.
func decodePosted(of fanfare.EventRef, text []byte, into any) error {
	if !checksum.VerifyJSON(int64(of.Seq), text, postedFirst) || json.Unmarshal(text, into) != nil {
		return checksum.Damaged("the event " + of.String())
	}
	return nil
}

// decodeItem reads the copy of an event in a run from its stored form. It fails with a DamagedError.
func decodeItem(run fanfare.EventRef, number uint32, seq fanfare.EventSeq, text []byte) (*fanfare.AcceptedEvent, error) {
	posted := &fanfare.AcceptedEvent{}
	if !checksum.VerifyJSON(int64(seq), text, postedFirst) || json.Unmarshal(text, posted) != nil {
		return nil, checksum.Damaged(fmt.Sprintf("the event with the number %d of the digest %s", number, run))
	}
	posted.Seq = seq
	return posted, nil
}

// encodeManifest returns the stored form of a manifest, with a checksum under its id.
func encodeManifest(m *fanfare.Manifest) ([]byte, error) {
	b, err := m.AppendBinary(checksum.Reserve())
	if err != nil {
		return nil, err
	}
	return checksum.Finish(int64(m.ID), b), nil
}

// decodeManifest reads a manifest of a day from its stored form. It fails with a DamagedError.
func decodeManifest(of fanfare.Day, id fanfare.ManifestID, stored []byte) (fanfare.Manifest, error) {
	m := fanfare.Manifest{ID: id}
	b, valid := checksum.Verify(int64(id), stored)
	if !valid || m.UnmarshalBinary(b) != nil {
		return fanfare.Manifest{ID: id}, damagedManifest(of, id)
	}
	return m, nil
}

func damagedManifest(of fanfare.Day, id fanfare.ManifestID) error {
	return checksum.Damaged(fmt.Sprintf("the manifest %x of the event %s", uint64(id), fanfare.EventRef{Day: of, Seq: id.Event()}))
}
