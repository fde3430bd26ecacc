package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

var cards = regexp.MustCompile(`\b\d{4} \d{4} \d{4} \d{4}\b`)

// redact hides card numbers wherever they appear.
func redact(s string) string { return cards.ReplaceAllString(s, "[redacted]") }

// pages lists the pages to capture; more is the height that is needed beyond that of a
// screen.
var pages = []page{
	{"runs", "/", 0},
	{"run", "/runs/order-4711?step=charge", 0},
	{"run-failed", "/runs/order-4698?panel=resume", 0},
	{"fork", "/runs/order-4711?panel=fork&edit=address", 650},
	{"waiting", "/waiting", 0},
	{"stuck", "/stuck", 0},
	{"no-match", "/?q=workflow:checkout+status:failed+since:1s", 0},
}

// linePages are the pages of what lines makes.
var linePages = []page{
	{"queues", "/queues", -400},
	{"queue", "/queues/emails", -300},
	{"schedules", "/schedules", -400},
	{"schedule", "/schedules/nightly-digest?from=2026-11-01&to=2026-11-08", 40},
}

type page struct {
	name, path string
	more       int64
}

// looks are the settings in which each page is captured.
var looks = []struct {
	name          string
	width, height int64
	dark, phone   bool
	least         int64 // of more
}{
	{"light", 1400, 1000, false, false, -1000},
	{"dark", 1400, 1000, true, false, -1000},
	{"phone", 390, 844, false, true, 0},
}

func shoot(ctx context.Context, base, out string, pages []page) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox)
	alloc, stop := chromedp.NewExecAllocator(ctx, opts...)
	defer stop()
	tab, stop := chromedp.NewContext(alloc)
	defer stop()
	for _, p := range pages {
		for _, l := range looks {
			scheme := "light"
			if l.dark {
				scheme = "dark"
			}
			png, err := shot(tab, base+p.path, l.width, l.height+max(p.more, l.least), scheme, l.phone)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", p.name, l.name, err)
			}
			file := filepath.Join(out, p.name+"-"+l.name+".png")
			if err := os.WriteFile(file, png, 0o644); err != nil {
				return err
			}
			fmt.Printf("%s %d kB\n", file, len(png)/1024)
		}
	}
	return nil
}

// shot opens a page and takes a screenshot.
func shot(tab context.Context, url string, width, height int64, scheme string, phone bool) ([]byte, error) {
	if _, err := chromedp.Call(tab, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: phone}); err != nil {
		return nil, err
	}
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
	if _, err := chromedp.Call(tab, emulation.SetEmulatedMedia, media); err != nil {
		return nil, err
	}
	if err := chromedp.Do(tab, chromedp.Navigate(url), chromedp.WaitReady(chromedp.CSS("body[data-ready]")), chromedp.Sleep(700*time.Millisecond)); err != nil {
		return nil, err
	}
	png, err := chromedp.Run(tab, chromedp.CaptureScreenshot())
	if err != nil {
		return nil, err
	}
	return shrink(png)
}
