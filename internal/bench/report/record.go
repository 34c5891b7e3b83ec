package report

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"
)

// OnPostgreSQL tells whether the server used PostgreSQL, whose CPU time is not that of
// the server.
func (r *Record) OnPostgreSQL() bool { return r.Params["db"] != nil }

// InMemory is the durability of an experiment that stores nothing.
const InMemory = "none"

// MarkInMemory records that the experiment stores nothing. It returns the database that
// was named, which is then only compared with the product.
func (r *Record) MarkInMemory() (database string) {
	r.Durability = InMemory
	database, _ = r.Params["db"].(string)
	delete(r.Params, "db")
	delete(r.Params, "db_settings")
	return database
}

// A Record is the result of one run: one line of JSON.
type Record struct {
	ID         string         `json:"id"`
	Params     map[string]any `json:"params"`
	Unit       string         `json:"unit"` // of Value and Limit
	Value      float64        `json:"value"`
	Limit      float64        `json:"limit"` // 0: none was measured
	Ratio      float64        `json:"ratio"` // Value / Limit
	P50Millis  float64        `json:"p50_ms"`
	P99Millis  float64        `json:"p99_ms"`
	CPUSeconds float64        `json:"cpu_s"`  // of the server, while the clock ran
	CPUMicros  float64        `json:"cpu_us"` // of the server for one item; 0: not known
	RSSMiB     float64        `json:"rss_mb"` // peak of the server
	Lost       int64          `json:"lost"`
	Duplicates int64          `json:"duplicates"`
	Refused    float64        `json:"refused,omitempty"`   // share of the messages that the next hop refused because there were too many in a second
	GrowthMiB  float64        `json:"growth_mb,omitempty"` // of the server's memory in a day
	Durability string         `json:"durability"`
	At         time.Time      `json:"at"`
	Call       time.Time      `json:"call,omitzero"` // when the command began that made the record: its runs belong together
	Machine    string         `json:"machine"`
	Version    string         `json:"version,omitempty"` // of the binary that was measured
	Steal      float64        `json:"steal"`             // share of the machine's CPU time that other tenants took during the run
	Others     float64        `json:"others"`            // share that anything else than the experiment took while the clock ran, other tenants included
	Stages     []Stage        `json:"stages,omitempty"`
	Points     []Point        `json:"points,omitempty"` // by the parameter that is varied; Value is one of them
	Over       []Series       `json:"over,omitempty"`   // rates over time
	Published  *Published     `json:"published,omitempty"`
	Goals      []Goal         `json:"goals,omitempty"` // of a run in full size
	Notes      []string       `json:"notes,omitempty"` // for readers
}

// A Stage is the duration of one step of a run.
type Stage struct {
	Name   string  `json:"name"`
	Millis float64 `json:"ms"`
}

// Published is the published figure with which the record is compared.
type Published struct {
	Value float64 `json:"value"` // in the record's unit; 0 where there is no number
	Text  string  `json:"text"`
}

func (r *Record) SetLimit(v float64) {
	if r.Limit = v; v > 0 {
		r.Ratio = r.Value / v
	}
}

func (r *Record) AddStage(name string, d time.Duration) {
	r.Stages = append(r.Stages, Stage{name, Millis(d)})
}

func (r *Record) Note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

func Millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// AppendTo appends the record to a file.
func (r *Record) AppendTo(path string) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	if closing := f.Close(); err == nil {
		err = closing
	}
	return err
}

// ReadRecords reads the JSON lines of a file.
func ReadRecords(path string) ([]Record, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	var all []Record
	for lines := json.NewDecoder(f); lines.More(); {
		var r Record
		if err := lines.Decode(&r); err != nil {
			return nil, fmt.Errorf("%s, record %d: %w", path, len(all)+1, err)
		}
		all = append(all, r)
	}
	return all, nil
}

// Median returns the record with the middle value, and the spread of all values as a
// share of that value.
func Median(runs []Record) (middle Record, spread float64) {
	sorted := slices.Clone(runs)
	slices.SortFunc(sorted, func(a, b Record) int {
		switch {
		case a.Value < b.Value:
			return -1
		case a.Value > b.Value:
			return 1
		}
		return 0
	})
	middle = sorted[len(sorted)/2]
	if middle.Value > 0 {
		spread = (sorted[len(sorted)-1].Value - sorted[0].Value) / middle.Value
	}
	return middle, spread
}
