-- wrk's part of the benchmark `front`: every request posts 20 bytes as an event; at the end one line of JSON.
wrk.method = "POST"
wrk.body = "12345678901234567890"
wrk.headers["Content-Type"] = "text/plain"

function done(summary, latency, requests)
   local e = summary.errors
   print(string.format(
      '{"requests":%d,"duration_us":%d,"bad_status":%d,"failed":%d,"p50_us":%d,"p99_us":%d,"max_us":%d}',
      summary.requests, summary.duration, e.status, e.connect + e.read + e.write + e.timeout,
      latency:percentile(50), latency:percentile(99), latency.max))
end
