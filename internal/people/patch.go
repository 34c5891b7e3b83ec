package people

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/inputerror"
)

// ApplyPatch applies a JSON Merge Patch (RFC 7396) to the public form of a subscriber.
func ApplyPatch(s *Subscriber, patch json.RawMessage) (p SubscriberPut, err error) {
	var change, is any
	if err := json.Unmarshal(patch, &change); err != nil || !IsObject(patch) {
		return p, inputerror.Invalid("", "", "a patch must be a JSON object")
	}
	before, err := json.Marshal(SubscriberPut{s.Addresses, s.Locale, s.TimeZone, s.Attributes})
	if err == nil {
		err = json.Unmarshal(before, &is)
	}
	if err != nil {
		return p, err
	}
	after, err := json.Marshal(mergePatch(is, change))
	if err != nil {
		return p, err
	}
	return DecodeSubscriber(after)
}

// mergePatch is the function MergePatch of RFC 7396, section 2.
func mergePatch(target, patch any) any {
	change, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	object, ok := target.(map[string]any)
	if !ok {
		object = map[string]any{}
	}
	for name, value := range change {
		if value == nil {
			delete(object, name)
		} else {
			object[name] = mergePatch(object[name], value)
		}
	}
	return object
}

// DecodeSubscriber reads a SubscriberPut and rejects unknown members.
func DecodeSubscriber(b []byte) (p SubscriberPut, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return p, inputerror.Invalid("/"+strings.ReplaceAll(kind.Field, ".", "/"), "", "a JSON %s is not allowed here", kind.Value)
		}
		return p, &fanfare.Error{Code: fanfare.Invalid, Message: "invalid subscriber: " + strings.TrimPrefix(err.Error(), "json: "),
			Hint: "valid members are addresses, locale, time_zone and attributes"}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return p, inputerror.Invalid("", "", "the body has more than one JSON value")
	}
	return p, nil
}
