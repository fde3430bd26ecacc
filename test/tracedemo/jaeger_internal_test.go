package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWhatJaegerAnswersIsReadAsSpans(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/traces/abc" {
			http.Error(w, `{"data":null,"errors":[{"code":404,"msg":"trace not found"}]}`, http.StatusNotFound)
			return
		}
		_, _ = w.Write([]byte(`{"data":[{"traceID":"abc","spans":[{"traceID":"abc","spanID":"2","operationName":"attempt charge",
			"references":[{"refType":"CHILD_OF","traceID":"abc","spanID":"1"},{"refType":"FOLLOWS_FROM","traceID":"abc","spanID":"0"}],
			"startTime":1000000,"duration":2500,"tags":[{"key":"durable.step.attempt","type":"int64","value":1},{"key":"error","type":"bool","value":true},
			{"key":"otel.status_description","type":"string","value":"error"}]}]}]}`))
	}))
	defer server.Close()
	j := &jaeger{query: server.URL}
	spans, err := j.trace(t.Context(), "abc")
	require.NoError(t, err)
	require.Len(t, spans, 1)
	s := spans[0]
	require.Equal(t, "1", s.Parent)
	require.Equal(t, "0", s.Links[0].ID)
	require.True(t, s.Failed)
	require.Equal(t, 2500*time.Microsecond, s.Took())
	require.Equal(t, json.Number("1"), s.Attributes["durable.step.attempt"])

	spans, err = j.trace(t.Context(), "unknown")
	require.NoError(t, err)
	require.Empty(t, spans)
}
