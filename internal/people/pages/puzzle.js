(function () {
  'use strict'
  var form = document.querySelector('form[data-bits]')
  if (!form) return
  var token = form.elements.token.value, bits = Number(form.getAttribute('data-bits'))

  // SHA-256 (FIPS 180-4) of text in ASCII; its first word is enough.
  var k = [], h0 = []
  for (var n = 2; k.length < 64; n++) {
    var prime = true
    for (var d = 2; d * d <= n; d++) if (n % d === 0) { prime = false; break }
    if (!prime) continue
    if (h0.length < 8) h0.push((Math.pow(n, 1 / 2) * 4294967296) | 0)
    k.push((Math.pow(n, 1 / 3) * 4294967296) | 0)
  }
  function turn (x, by) { return (x >>> by) | (x << (32 - by)) }
  function hash (text) {
    var length = text.length, words = new Array((((length + 8) >> 6) + 1) * 16).fill(0), w = []
    for (var i = 0; i < length; i++) words[i >> 2] |= text.charCodeAt(i) << (24 - (i & 3) * 8)
    words[length >> 2] |= 0x80 << (24 - (length & 3) * 8)
    words[words.length - 1] = length * 8
    var h = h0.slice()
    for (var at = 0; at < words.length; at += 16) {
      var a = h[0], b = h[1], c = h[2], e = h[4], f = h[5], g = h[6], dd = h[3], hh = h[7]
      for (i = 0; i < 64; i++) {
        if (i < 16) w[i] = words[at + i]
        else {
          var x = w[i - 15], y = w[i - 2]
          w[i] = (w[i - 16] + w[i - 7] + (turn(x, 7) ^ turn(x, 18) ^ (x >>> 3)) + (turn(y, 17) ^ turn(y, 19) ^ (y >>> 10))) | 0
        }
        var t = (hh + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + k[i] + w[i]) | 0
        var u = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0
        hh = g; g = f; f = e; e = (dd + t) | 0; dd = c; c = b; b = a; a = (t + u) | 0
      }
      h[0] = (h[0] + a) | 0; h[1] = (h[1] + b) | 0; h[2] = (h[2] + c) | 0; h[3] = (h[3] + dd) | 0
      h[4] = (h[4] + e) | 0; h[5] = (h[5] + f) | 0; h[6] = (h[6] + g) | 0; h[7] = (h[7] + hh) | 0
    }
    return h[0] >>> (32 - bits)
  }

  var next = 0
  function search () {
    for (var end = next + 2000; next < end; next++) {
      if (hash(token + '.' + next) === 0) {
        form.elements.proof.value = String(next)
        return
      }
    }
    setTimeout(search, 0)
  }
  search()
})()
