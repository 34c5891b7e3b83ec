package demo

import (
	"time"

	"fanfare.dev/fanfare/examples/earthquakes"
)

// earthquakesExample is examples/earthquakes.
func earthquakesExample() *example {
	return &example{
		name: "earthquakes", topic: "earthquake", files: earthquakes.Files(),
		intro: "A week of earthquakes", called: "earthquakes", heading: "The strongest earthquake", near: "Near you:",
		events: ofFile(earthquakes.Files(), "earthquakes.ndjson"), file: "earthquakes.ndjson",
		idField: "id", timeField: "time",
		describe: func(data []byte) (notice, error) {
			e, err := decodeInto[struct {
				Title string    `json:"title"`
				Time  time.Time `json:"time"`
				Mag   float64   `json:"mag"`
			}](data)
			return notice{e.Title, e.Time, e.Mag}, err
		},
		wishes:     earthquakeWishes,
		inventedID: "my-first",
		invented: `{
      "id":"my-first","time":"2026-01-01T12:00:00Z",
      "title":"M 7.1 - 9km S of Nowhere, Alaska",
      "place":"9km S of Nowhere, Alaska","url":"https://example.org/my-first",
      "mag":7.1,"tsunami":1,"sig":780,"lon":-150.1,"lat":61.3,"depth":12}`,
	}
}
