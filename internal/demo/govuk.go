package demo

import (
	"time"

	"fanfare.dev/fanfare/examples/govuk"
)

// govukExample is examples/govuk.
func govukExample() *example {
	return &example{
		name: "govuk", topic: "content-change", files: govuk.Files(),
		intro: "Documents from GOV.UK", called: "documents", heading: "The document with the most recipients", near: "Page changed:",
		events: ofFile(govuk.Files(), "content-changes.ndjson"), file: "content-changes.ndjson",
		idField: "base_path", timeField: "public_updated_at",
		describe: func(data []byte) (notice, error) {
			e, err := decodeInto[contentChange](data)
			return notice{title: e.Title, at: e.PublicUpdatedAt}, err
		},
		wishes:     govukWishes,
		inventedID: "/my-first",
		invented: `{
      "content_id":"my-first","base_path":"/my-first","locale":"en",
      "title":"Filing by post ends","document_type":"news_story",
      "description":"","change_note":"First published.",
      "public_updated_at":"2026-01-01T12:00:00Z",
      "links":{"organisations":[{
        "content_id":"6667cce2-e809-4e21-ae09-cb0bdc1ddda3",
        "title":"HM Revenue & Customs"}]}}`,
	}
}

// A contentChange holds the fields of an event that the demonstration uses.
type contentChange struct {
	Title           string    `json:"title"`
	BasePath        string    `json:"base_path"`
	DocumentType    string    `json:"document_type"`
	Locale          string    `json:"locale"`
	PublicUpdatedAt time.Time `json:"public_updated_at"`
	Links           struct {
		Organisations []struct {
			ContentID string `json:"content_id"`
		} `json:"organisations"`
	} `json:"links"`
}
