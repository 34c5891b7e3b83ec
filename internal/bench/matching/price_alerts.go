package matching

import (
	"fmt"
	"math"
	"strconv"

	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/condition"
)

// priceAlerts is B1: alerts on the price of one of 10,000 symbols. Alerts and events
// choose the symbol by Zipf. An event matches ten alerts on average.
type priceAlerts struct {
	n       int
	seed    uint64
	symbols loadgen.Zipf
	long    bool // B1j: events of 300 bytes
}

const (
	topPrice       = 1000
	matchesPerPost = 10
	longEventBytes = 300
)

func newPriceAlerts(n int, seed uint64, long bool) *priceAlerts {
	return &priceAlerts{n, seed, loadgen.NewZipf(min(10_000, max(1, n/100))), long}
}

func (q *priceAlerts) definition() condition.Definition {
	return condition.Definition{
		Schema: []byte(`{"type":"object","properties":{"symbol":{"type":"string"},"price":{"type":"number"}}}`),
		Rules: []condition.Rule{{Name: "above", When: "event.symbol == sub.symbol && event.price >= sub.trigger",
			Params: map[string]string{"symbol": "string", "trigger": "number"}}},
	}
}

// alert returns the symbol and the threshold of subscription i.
func (q *priceAlerts) alert(i int) (symbol int, trigger float64) {
	h := loadgen.Mix(q.seed ^ uint64(i))
	return q.symbols.Rank(loadgen.Unit(h)), written(topPrice * loadgen.Unit(loadgen.Mix(h)))
}

// quote returns the symbol and the price of event i. The thresholds are spread evenly,
// so that the price determines how many of them it reaches.
func (q *priceAlerts) quote(i int) (symbol int, price float64) {
	h := loadgen.Mix(q.seed + 1<<40 + uint64(i))
	symbol = q.symbols.Rank(loadgen.Unit(h))
	waiting := q.symbols.Share(symbol) * float64(q.n)
	return symbol, written(min(topPrice, topPrice*2*matchesPerPost*loadgen.Unit(loadgen.Mix(h))/waiting))
}

// written rounds a price as it is written in JSON, to five digits after the point.
func written(price float64) float64 { return math.Round(price*1e5) / 1e5 }

func (q *priceAlerts) condition(i int) (filter, rule string, params []byte) {
	symbol, trigger := q.alert(i)
	params = append(params, `{"symbol":"`...)
	params = loadgen.AppendSymbol(params, symbol)
	params = append(params, `","trigger":`...)
	params = strconv.AppendFloat(params, trigger, 'f', -1, 64)
	return "", "above", append(params, '}')
}

func (q *priceAlerts) event(i int) []byte {
	symbol, price := q.quote(i)
	if !q.long {
		return fmt.Appendf(nil, `{"symbol":"%s","price":%s}`, loadgen.AppendSymbol(nil, symbol), strconv.FormatFloat(price, 'f', -1, 64))
	}
	h := loadgen.Mix(q.seed + 1<<41 + uint64(i))
	data := fmt.Appendf(nil, `{"exchange":"XNAS","currency":"USD","time":"2026-11-20T%02d:%02d:%02d.%03dZ","sequence":%d,"symbol":"%s",`+
		`"bid":%.4f,"bidSize":%d,"ask":%.4f,"askSize":%d,"price":%s,"volume":%d,"open":%.2f,"halted":%t,"conditions":["@","F"],"venue":{"id":"Q","name":"Nasdaq"},"note":"`,
		9+h%7, h>>8%60, h>>16%60, h>>24%1000, i, loadgen.AppendSymbol(nil, symbol), price*0.9999, 100*(1+h>>32%9), price*1.0001, 100*(1+h>>40%9),
		strconv.FormatFloat(price, 'f', -1, 64), h>>20%1_000_000, price*1.01, h%97 == 0)
	for len(data) < longEventBytes-2 {
		data = append(data, '-')
	}
	return append(data, `"}`...)
}

func (q *priceAlerts) bare(events int) limitMatch {
	b := newOrdered(len(q.symbols.UpTo), q.n, q.alert)
	type quote struct {
		symbol int
		price  float64
	}
	typed := make([]quote, events)
	for i := range typed {
		typed[i].symbol, typed[i].price = q.quote(i)
	}
	look := newByteScan()
	return limitMatch{exact: true, answer: func(i int, data []byte, dst []uint32) []uint32 {
		if q.long && look(data) == 0 {
			return dst // never: it is JSON
		}
		return b.upTo(typed[i].symbol, typed[i].price, dst)
	}}
}

// thresholds is B2: a threshold alone, which 1 % of the subscriptions have below the
// value of the event.
type thresholds struct {
	n    int
	seed uint64
}

const topLevel = 100

func (thresholds) definition() condition.Definition {
	return condition.Definition{
		Schema: []byte(`{"type":"object","properties":{"level":{"type":"number"}}}`),
		Rules:  []condition.Rule{{Name: "above", When: "event.level >= sub.threshold", Params: map[string]string{"threshold": "number"}}},
	}
}

func (b thresholds) threshold(i int) (group int, threshold float64) {
	return 0, written(topLevel * loadgen.Unit(loadgen.Mix(b.seed^uint64(i))))
}

// level returns the value of event i, between 0.8 and 1.2.
func (b thresholds) level(i int) float64 {
	return written(0.8 + 0.4*loadgen.Unit(loadgen.Mix(b.seed+1<<40+uint64(i))))
}

func (b thresholds) condition(i int) (filter, rule string, params []byte) {
	_, threshold := b.threshold(i)
	return "", "above", append(strconv.AppendFloat([]byte(`{"threshold":`), threshold, 'f', -1, 64), '}')
}

func (b thresholds) event(i int) []byte {
	return append(strconv.AppendFloat([]byte(`{"level":`), b.level(i), 'f', -1, 64), '}')
}

func (b thresholds) bare(events int) limitMatch {
	rows := newOrdered(1, b.n, b.threshold)
	typed := make([]float64, events)
	for i := range typed {
		typed[i] = b.level(i)
	}
	return limitMatch{exact: true, answer: func(i int, _ []byte, dst []uint32) []uint32 { return rows.upTo(0, typed[i], dst) }}
}
