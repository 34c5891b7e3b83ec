package demo

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"fanfare.dev/fanfare/examples/stocks"
)

// stocksExample is examples/stocks.
func stocksExample() *example {
	return &example{
		name: "stocks", topic: "price", files: stocks.Files(),
		intro: "Ten years of share prices", called: "prices", heading: "The price with the most recipients", near: "GOOG has risen",
		events: priceLines, file: "prices.ndjson",
		idField: "id", timeField: "date",
		describe: func(data []byte) (notice, error) {
			p, err := decodeInto[price](data)
			return notice{title: fmt.Sprintf("%s at %v", p.Symbol, p.Price), at: p.Date}, err
		},
		wishes:     stockWishes,
		inventedID: "my-first",
		invented: `{
      "id":"my-first","symbol":"GOOG","date":"2026-01-01T00:00:00Z","price":777}`,
	}
}

// A price is the data of one event.
type price struct {
	ID     string    `json:"id"`
	Symbol string    `json:"symbol"`
	Date   time.Time `json:"date"`
	Price  float64   `json:"price"`
}

// readPrices reads stocks.csv (symbol, month, closing price), the oldest first. Prices of the same
// day stay in the order of the file.
func readPrices() ([]price, error) {
	file, err := fs.ReadFile(stocks.Files(), "stocks.csv")
	if err != nil {
		return nil, err
	}
	rows, err := csv.NewReader(bytes.NewReader(file)).ReadAll()
	if err != nil {
		return nil, err
	}
	var all []price
	for i, row := range rows[1:] {
		p := price{Symbol: row[0]}
		if p.Date, err = time.Parse("Jan 2 2006", row[1]); err == nil {
			p.Price, err = strconv.ParseFloat(strings.TrimSpace(row[2]), 64)
		}
		if err != nil {
			return nil, fmt.Errorf("stocks.csv, line %d: %w", i+2, err)
		}
		p.ID = p.Symbol + " " + p.Date.Format(time.DateOnly)
		all = append(all, p)
	}
	slices.SortStableFunc(all, func(a, b price) int { return a.Date.Compare(b.Date) })
	return all, nil
}

// priceLines returns the prices as events.
func priceLines() ([]byte, error) {
	all, err := readPrices()
	if err != nil {
		return nil, err
	}
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	for _, p := range all {
		if err := encoder.Encode(p); err != nil {
			return nil, err
		}
	}
	return lines.Bytes(), nil
}
