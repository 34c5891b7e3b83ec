package query_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/compat/notifybc/query"
)

var record = decode(`{"id": "5f1", "serviceName": "myService", "channel": "email", "state": "confirmed", "userChannelId": "Ann@Example.com",
	"created": "2026-03-01T10:00:00.000Z", "index": 7, "isBroadcast": true, "none": null, "text": "Ferry to Victoria: Café open",
	"tags": ["a", "b"], "scores": [1, 5], "data": {"province": "BC", "area": {"size": 12.5}},
	"dispatch": {"failed": [{"subscriptionId": "s1", "error": {"code": 550}}, {"subscriptionId": "s2"}], "successful": ["s3"]}}`)

func decode(text string) (v map[string]any) {
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		panic(err)
	}
	return v
}

func TestWhere(t *testing.T) {
	for where, want := range map[string]bool{
		`{}`:                                  true,
		`{"serviceName": "myService"}`:        true,
		`{"serviceName": "other"}`:            false,
		`{"state": {"$ne": "deleted"}}`:       true,
		`{"missing": {"$ne": "x"}}`:           true,
		`{"missing": null}`:                   true,
		`{"none": null}`:                      true,
		`{"none": {"$exists": true}}`:         true,
		`{"missing": {"$exists": true}}`:      false,
		`{"missing": {"$exists": false}}`:     true,
		`{"index": {"$gt": 6, "$lte": 7}}`:    true,
		`{"index": {"$gt": "6"}}`:             false,
		`{"index": {"$lt": 7}}`:               false,
		`{"id": {"$in": ["5f0", "5f1"]}}`:     true,
		`{"_id": "5f1"}`:                      true,
		`{"id": {"$nin": ["5f1"]}}`:           false,
		`{"channel": {"$in": []}}`:            false,
		`{"created": {"$gte": "2026-03-01"}}`: true,
		`{"created": {"$lt": "2026-03-01"}}`:  false,
		`{"created": {"$gte": "2026-03-01T11:00:00+01:00", "$lte": "2026-03-01T10:00:00Z"}}`: true,
		`{"created": 1772359200000}`:                              true,
		`{"isBroadcast": "true"}`:                                 true,
		`{"tags": "b"}`:                                           true,
		`{"tags": ["a", "b"]}`:                                    true,
		`{"tags": ["b", "a"]}`:                                    false,
		`{"tags": {"$nin": ["c"]}}`:                               true,
		`{"tags.1": "b"}`:                                         true,
		`{"scores": {"$gt": 4}}`:                                  true,
		`{"data.province": "BC"}`:                                 true,
		`{"data": {"province": "BC"}}`:                            false,
		`{"data.area": {"size": 12.5}}`:                           true,
		`{"data.area.size": {"$gte": 12.5}}`:                      true,
		`{"dispatch.failed.subscriptionId": "s2"}`:                true,
		`{"dispatch.failed.error.code": 550}`:                     true,
		`{"dispatch.failed.error.code": {"$exists": false}}`:      false,
		`{"dispatch.successful": {"$in": ["s1", "s3"]}}`:          true,
		`{"userChannelId": {"$regex": "^ann@"}}`:                  false,
		`{"userChannelId": {"$regex": "^ann@", "$options": "i"}}`: true,
		`{"userChannelId": {"$not": {"$regex": "example.org$"}}}`: true,
		`{"$or": [{"state": "deleted"}, {"index": 7}]}`:           true,
		`{"$nor": [{"state": "deleted"}, {"index": 7}]}`:          false,
		`{"$and": [{"state": "confirmed"}, {"index": 8}]}`:        false,
		`{"$text": {"$search": "victoria"}}`:                      true,
		`{"$text": {"$search": "nowhere CAFE"}}`:                  true,
		`{"$text": {"$search": "victor"}}`:                        false,
		`{"$text": {"$search": "\"ferry to victoria\""}}`:         true,
		`{"$text": {"$search": "\"victoria ferry\""}}`:            false,
		`{"$text": {"$search": "victoria -open"}}`:                false,
		`{"$text": {"$search": "example"}}`:                       true,
		`{"$text": {"$search": "bc"}, "state": "deleted"}`:        false,
	} {
		for _, parameter := range []url.Values{{"where": {where}}, {"filter": {`{"where":` + where + `}`}}} {
			q, err := query.Parse(parameter)
			if err != nil {
				t.Errorf("%s: %v", where, err)
				continue
			}
			if got := q.Match(record); got != want || q.Err() != nil {
				t.Errorf("%s: %v, %v", where, got, q.Err())
			}
		}
	}
}

func TestBrackets(t *testing.T) {
	for text, want := range map[string]bool{
		"filter[where][state]=confirmed":                                     true,
		"where[state]=deleted":                                               false,
		"filter[where][id][$in][0]=x&filter[where][id][$in][1]=5f1":          true,
		"filter[where][id][$in][]=x&filter[where][id][$in][]=5f1":            true,
		"filter[where][index]=7":                                             false, // a text, and the type of the field is unknown
		"filter[where][created][$gt]=2026-01-01":                             true,
		"filter[where][$or][0][state]=deleted&filter[where][$or][1][id]=5f1": true,
		"filter[where][data.province]=BC&filter[limit]=5":                    true,
	} {
		values, err := url.ParseQuery(text)
		if err != nil {
			t.Fatal(err)
		}
		q, err := query.Parse(values)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if q.Match(record) != want {
			t.Errorf("%s: %v", text, !want)
		}
	}
}

// TestMistakes has parameters that are refused, and a part of the message.
func TestMistakes(t *testing.T) {
	for text, part := range map[string]string{
		"filter={":                                  "filter is not valid JSON",
		"filter=[]":                                 "must be an object",
		"filter={} x":                               "not valid JSON",
		`filter={"wher":{}}`:                        "filter.wher is not supported",
		`filter={"where":[]}`:                       "where must be an object",
		`where={"a":{"$where":"1"}}`:                "$where of a is not supported",
		`where={"$where":"1"}`:                      "$where is not supported",
		`where={"a":{"inq":[1],"$in":1}}`:           "mixes operators",
		`where={"a":{"$in":1}}`:                     "requires a list",
		`where={"a":{"$exists":"x"}}`:               "requires true or false",
		`where={"a":{"$regex":"(?=x)"}}`:            "$regex of a is not supported",
		`where={"a":{"$regex":"(a{1000}){1000}"}}`:  "$regex of a",
		`where={"a":{"$regex":"a","$options":"g"}}`: "may contain i, m and s",
		`where={"a":{"$options":"i"}}`:              "requires $regex",
		`where={"a":{"$not":"x"}}`:                  "requires an object of operators",
		`where={"$or":[]}`:                          "requires a list of conditions",
		`where={"$text":{"$find":"x"}}`:             "not supported",
		`where={"created":{"$gt":"soon"}}`:          "must be compared with a date",
		`where={"a..b":1}`:                          "not the path",
		`filter={"limit":-1}`:                       "filter.limit must be",
		`filter={"skip":1.5}`:                       "filter.skip must be",
		`filter={"order":[["a","up"]]}`:             "must be asc, desc",
		`filter={"order":5}`:                        "filter.order must be",
		`filter={"fields":{"a":true,"b":false}}`:    "must either name",
		`filter={"fields":7}`:                       "filter.fields must be",
		"filter[where=x":                            "not closed",
		"filter[a]=1&filter={}":                     "more than once",
		"where=" + strings.Repeat("[", 100):         "nested deeper",
		"where=" + strings.Repeat(" ", 70000):       "more than 65536 bytes",
	} {
		values, err := url.ParseQuery(strings.ReplaceAll(text, "+", "%2B"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = query.Parse(values)
		e, ok := errors.AsType[*query.Error](err)
		if !ok || !strings.Contains(e.Message, part) {
			t.Errorf("%.60s: %v, want %q", text, err, part)
		}
	}
}

func TestPage(t *testing.T) {
	records := func() (list []map[string]any) {
		for _, text := range []string{`{"id":"1","a":"b","n":2,"x":{"y":1,"z":2}}`, `{"id":"2","a":"a","n":1}`, `{"id":"3","n":3,"a":"b"}`, `{"id":"4"}`} {
			list = append(list, decode(text))
		}
		return list
	}
	for filter, want := range map[string]string{
		`{}`:                                   `1 2 3 4`,
		`{"order":[["a","asc"],["n","desc"]]}`: `4 2 3 1`,
		`{"order":"a -n"}`:                     `4 2 3 1`,
		`{"order":{"a":-1,"n":1}}`:             `1 3 2 4`,
		`{"order":{"n":-1}}`:                   `3 1 2 4`,
		`{"order":"n ASC"}`:                    `4 2 1 3`,
		`{"skip":1,"limit":2}`:                 `2 3`,
		`{"skip":"3","limit":"2"}`:             `4`,
		`{"skip":9}`:                           ``,
		`{"limit":0}`:                          `1 2 3 4`,
	} {
		q, err := query.Parse(url.Values{"filter": {filter}})
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, r := range q.Page(records()) {
			ids = append(ids, r["id"].(string))
		}
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("%s: %s, want %s", filter, got, want)
		}
	}
	for fields, want := range map[string]string{
		`["a","x.y"]`:   `{"a":"b","id":"1","x":{"y":1}}`,
		`"a -id"`:       `{"a":"b"}`,
		`"-a -x.z"`:     `{"id":"1","n":2,"x":{"y":1}}`,
		`{"n":true}`:    `{"id":"1","n":2}`,
		`{"n":0,"x":0}`: `{"a":"b","id":"1"}`,
		`["x.y","x.z"]`: `{"id":"1","x":{"y":1,"z":2}}`,
		`["id"]`:        `{"id":"1"}`,
	} {
		q, err := query.Parse(url.Values{"filter": {`{"fields":` + fields + `,"limit":1}`}})
		if err != nil {
			t.Errorf("%s: %v", fields, err)
			continue
		}
		all := records()
		got, _ := json.Marshal(q.Page(all)[0])
		if string(got) != want {
			t.Errorf("%s: %s, want %s", fields, got, want)
		}
		if !reflect.DeepEqual(all, records()) {
			t.Errorf("%s changes the records", fields)
		}
	}
}

func TestPathsRestrictToWhatEveryMatchHas(t *testing.T) {
	q, err := query.Parse(url.Values{"where": {`{"serviceName":"a","state":{"$in":["x","y"]},"$and":[{"state":"y"},{"id":{"$in":["1","2"]}}],
		"created":{"$gt":"2026-01-01","$lte":"2026-02-01"},"$or":[{"channel":"sms"},{"channel":"email"}],"userId":null}`}})
	if err != nil {
		t.Fatal(err)
	}
	want := query.Paths{ServiceNames: []string{"a"}, States: []string{"y"}, IDs: []string{"1", "2"},
		CreatedFrom: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), CreatedTo: time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)}
	if got := q.Paths(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestExpensiveQueryEndsAtItsBudget(t *testing.T) {
	list := make([]any, 100_000)
	for i := range list {
		list[i] = fmt.Sprint("element ", i)
	}
	q, err := query.Parse(url.Values{"where": {`{"tags": {"$nin": ["x", "y", "z"]}}`}})
	if err != nil {
		t.Fatal(err)
	}
	matched := 0
	for range 10_000 {
		if !q.Match(map[string]any{"tags": list}) {
			break
		}
		matched++
	}
	if q.Err() == nil || matched > 500 {
		t.Errorf("%d records matched, error %v", matched, q.Err())
	}
	if q.Match(record) {
		t.Error("a record matches beyond the budget")
	}
}

// FuzzParse parses any parameters and applies them to a record.
func FuzzParse(f *testing.F) {
	for _, text := range []string{`filter={"where":{"a":{"$gt":1}},"order":[["a","asc"]],"fields":["a.b"]}`, "where[a][$in][]=1&where[$or][0][b]=2",
		`where={"$text":{"$search":"a -b \"c d\""}}`, `where={"tags.0":{"$not":{"$regex":"a+","$options":"i"}}}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		values, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		q, err := query.Parse(values)
		if err != nil {
			if _, ok := errors.AsType[*query.Error](err); !ok {
				t.Fatalf("error %#v", err)
			}
			return
		}
		before := fmt.Sprint(record)
		q.Match(record)
		if _, err := json.Marshal(q.Page([]map[string]any{record, {"id": "2"}})); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(record) != before {
			t.Fatal("the record changes")
		}
	})
}
