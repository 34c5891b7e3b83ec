package words

import "testing"

func TestNamesBecomeWords(t *testing.T) {
	for name, want := range map[string]string{"": "", "storm": "Storm", "road-closures": "Road closures", "min_level": "Min level", "a.b__c-": "A b c", "écran": "Écran"} {
		if got := OfName(name); got != want {
			t.Errorf("%q becomes %q, want %q", name, got, want)
		}
	}
}
