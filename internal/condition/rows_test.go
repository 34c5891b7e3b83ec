package condition

import (
	"testing"

	"fanfare.dev/fanfare"

	"fanfare.dev/fanfare/internal/condition/expr"
	"fanfare.dev/fanfare/internal/condition/lang"
)

func TestAFreeRowIsUsedBeforeANewOne(t *testing.T) {
	tb := &table{store: &pageStore{}}
	texts := expr.NewTextTable()
	var rows []uint32
	for place := range 5 {
		rows = append(rows, tb.storeRow(fanfare.NewRowID(0, uint32(place)), lang.ParamValues{}, texts))
	}
	for _, freed := range []uint32{rows[3], rows[0]} {
		tb.freeRow(freed, texts)
		if got := tb.storeRow(fanfare.NewRowID(0, 9), lang.ParamValues{}, texts); got != freed {
			t.Errorf("row %d is free, and row %d was taken", freed, got)
		}
	}
}
