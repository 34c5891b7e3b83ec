package dispatch

import (
	"maps"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

func TestAResponseOfAFilterAnswersForEachRecipient(t *testing.T) {
	t.Parallel()
	var refs [3]fanfare.DeliveryRef
	var ids []string
	for i := range refs {
		refs[i] = fanfare.DeliveryRef{Day: 20000, Manifest: fanfare.NewManifestID(fanfare.NewEventSeq(1, 0), 0), Position: uint32(i)}
		ids = append(ids, "ID"+string(rune('0'+i)), refs[i].String())
	}
	request := &workerRequest{worker: "filter chooser", recipients: refs[:]}
	read := func(response string) (deliveries.FilterAnswers, map[fanfare.DeliveryRef]string, error) {
		return request.filterAnswers([]byte(strings.NewReplacer(ids...).Replace(response)))
	}
	answers, faults, err := read(`{"messages":[{"id":"ID2","error":"no\naccount"},{"id":"ID0","keep":true},{"id":"dlv-other","keep":"x"},{"id":"ID1","keep":false}]}`)
	want := deliveries.FilterAnswers{refs[0]: deliveries.FilterKeeps, refs[1]: deliveries.FilterRemoves, refs[2]: deliveries.FilterFailed}
	if err != nil || !maps.Equal(answers, want) || len(faults) != 1 || faults[refs[2]] != "filter chooser: no account" {
		t.Errorf("got %v, %q, %v", answers, faults, err)
	}
	for response, want := range map[string]string{
		`{"messages":[{"id":"ID0","keep":true},{"id":"ID1","keep":true}]}`:                        "no answer for " + refs[2].String(),
		`{"messages":[{"id":"ID0","keep":true},{"id":"ID1","keep":true},{"id":"ID2"}]}`:           "neither keep nor error",
		`{"messages":[{"id":"ID0","keep":true},{"id":"ID1","keep":"yes"},{"id":"ID2","keep":1}]}`: "the answer for " + refs[1].String() + " is not valid",
		`{"messages":[{"id":0}]}`: "not valid",
		`[]`:                      "the response is not valid",
		``:                        "the response is not valid",
	} {
		if answers, _, err := read(response); err == nil || !strings.Contains(err.Error(), want) || answers != nil {
			t.Errorf("%s: got %v, %v, want %q", response, answers, err, want)
		}
	}
}
