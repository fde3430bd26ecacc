package main

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"slices"
)

// shrink reduces a picture to its 256 most common colours. Pages have few
// colours, so the difference only shows in the size of the repository.
func shrink(body []byte) ([]byte, error) {
	img, err := png.Decode(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	bounds := img.Bounds()
	count := map[color.RGBA]int{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			count[rgba(img.At(x, y))]++
		}
	}
	palette := popular(count)
	nearest := map[color.RGBA]uint8{}
	out := image.NewPaletted(bounds, palette)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			c := rgba(img.At(x, y))
			i, known := nearest[c]
			if !known {
				i = uint8(palette.Index(c))
				nearest[c] = i
			}
			out.SetColorIndex(x, y, i)
		}
	}
	var b bytes.Buffer
	enc := png.Encoder{CompressionLevel: png.BestCompression}
	if err := enc.Encode(&b, out); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func rgba(c color.Color) color.RGBA {
	r, g, b, _ := c.RGBA()
	return color.RGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), 255}
}

// popular returns the most common colours. It takes two colours that are too
// close to distinguish only if there is room left.
func popular(count map[color.RGBA]int) color.Palette {
	all := make([]color.RGBA, 0, len(count))
	for c := range count {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b color.RGBA) int {
		if n := count[b] - count[a]; n != 0 {
			return n
		}
		return int(a.R) + int(a.G)<<8 + int(a.B)<<16 - int(b.R) - int(b.G)<<8 - int(b.B)<<16
	})
	var p color.Palette
	for _, near := range []int{10, 4, 0} {
		for _, c := range all {
			if len(p) == 256 {
				return p
			}
			if !slices.ContainsFunc(p, func(o color.Color) bool { return distance(o.(color.RGBA), c) <= near }) {
				p = append(p, c)
			}
		}
	}
	return p
}

func distance(a, b color.RGBA) int {
	abs := func(x, y uint8) int {
		if x > y {
			return int(x - y)
		}
		return int(y - x)
	}
	return abs(a.R, b.R) + abs(a.G, b.G) + abs(a.B, b.B)
}
