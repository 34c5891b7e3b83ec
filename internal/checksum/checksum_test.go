package checksum_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/checksum"
)

func TestEachFlippedBitOfAValueIsDetected(t *testing.T) {
	for _, value := range [][]byte{{}, {1}, []byte("a value"), bytes.Repeat([]byte("long "), 500)} {
		stored := checksum.Add(7, value)
		if got, valid := checksum.Verify(7, stored); !valid || !bytes.Equal(got, value) || !checksum.Has(stored) {
			t.Fatalf("%q: got %q, %v", value, got, valid)
		}
		if _, valid := checksum.Verify(8, stored); valid {
			t.Errorf("%q is valid under another key", value)
		}
		for bit := range 8 * len(stored) {
			flipped := bytes.Clone(stored)
			flipped[bit/8] ^= 1 << (bit % 8)
			got, valid := checksum.Verify(7, flipped)
			if valid && bit/8 > 1 {
				t.Fatalf("%q: the flip of bit %d is not detected", value, bit)
			}
			// Without its marker, the value is passed on as one of an older version, which its format must refuse.
			if valid && (!bytes.Equal(got, flipped) || got[0] == 1 || got[0] == 2 || got[0] == '{') {
				t.Fatalf("%q: after the flip of bit %d it is %q", value, bit, got)
			}
		}
	}
}

func TestAValueIsCompletedInPlace(t *testing.T) {
	if got, want := checksum.Finish(3, append(checksum.Reserve(), "text"...)), checksum.Add(3, []byte("text")); !bytes.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestValuesOfOlderVersionsAreValid(t *testing.T) {
	for _, value := range []string{"", "\x01\x01", "\x02", `{"service":"a"}`, "\x14"} {
		if got, valid := checksum.Verify(1, []byte(value)); !valid || string(got) != value || checksum.Has(got) {
			t.Errorf("%q: got %q, %v", value, got, valid)
		}
	}
	old := []byte(`{"service":"a","n":1}`)
	if !checksum.VerifyJSON(1, old, "service") || checksum.HasJSON(old) {
		t.Errorf("%s is not valid", old)
	}
	for _, bad := range []string{"", "{}", "null", `{"servicf":"a"}`, `{"crc32c":"`, `{"crc32c":"00000000","service":"a"}`} {
		if checksum.VerifyJSON(1, []byte(bad), "service") {
			t.Errorf("%q is valid", bad)
		}
	}
}

func TestEachFlippedBitOfAJSONObjectIsDetected(t *testing.T) {
	text := []byte(`{"service":"a","data":{"x":[1,2,3]}}`)
	stored := checksum.AddToJSON(9, text)
	if !checksum.VerifyJSON(9, stored, "service") || checksum.VerifyJSON(10, stored, "service") {
		t.Fatalf("%s is not valid, or is valid under another key", stored)
	}
	var members struct {
		Service string
		Data    json.RawMessage
	}
	if err := json.Unmarshal(stored, &members); err != nil || members.Service != "a" || string(members.Data) != `{"x":[1,2,3]}` {
		t.Fatalf("%s: %+v, %v", stored, members, err)
	}
	for bit := range 8 * len(stored) {
		flipped := bytes.Clone(stored)
		flipped[bit/8] ^= 1 << (bit % 8)
		if checksum.VerifyJSON(9, flipped, "service") && !bytes.EqualFold(flipped, stored) {
			t.Fatalf("the flip of bit %d is not detected: %s", bit, flipped)
		}
	}
}

func TestDamageIsFoundInAnError(t *testing.T) {
	err := fmt.Errorf("batch: %w", checksum.Damaged("the event evt-1"))
	told, ok := errors.AsType[*fanfare.Error](err)
	if !checksum.IsDamaged(err) || !ok || told.Hint == "" || checksum.IsDamaged(told) {
		t.Errorf("%v, %v", err, told)
	}
}
