package demo

// A town is a place whose generated inhabitants subscribe to earthquakes around it.
type town struct{ lat, lon float64 }

func towns() []town {
	return []town{
		{34.05, -118.24}, // Los Angeles
		{37.77, -122.42}, // San Francisco
		{40.80, -124.16}, // Eureka
		{61.22, -149.90}, // Anchorage
		{64.84, -147.72}, // Fairbanks
		{36.17, -115.14}, // Las Vegas
		{39.53, -119.81}, // Reno
		{47.61, -122.33}, // Seattle
		{40.76, -111.89}, // Salt Lake City
		{35.47, -97.52},  // Oklahoma City
		{19.71, -155.08}, // Hilo
		{18.47, -66.11},  // San Juan
		{18.49, -69.93},  // Santo Domingo
		{19.43, -99.13},  // Mexico City
		{13.69, -89.22},  // San Salvador
		{-12.05, -77.04}, // Lima
		{-33.45, -70.67}, // Santiago
		{25.03, 121.57},  // Taipei
		{23.98, 121.60},  // Hualien
		{35.68, 139.69},  // Tokyo
		{14.60, 120.98},  // Manila
		{-6.21, 106.85},  // Jakarta
		{-9.44, 147.18},  // Port Moresby
		{-17.73, 168.32}, // Port Vila
		{-18.14, 178.44}, // Suva, near the 180th meridian
		{-41.29, 174.78}, // Wellington
		{34.53, 69.17},   // Kabul
		{42.87, 74.59},   // Bishkek
	}
}
