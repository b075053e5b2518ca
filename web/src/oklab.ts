// SPDX-License-Identifier: MIT
// A space in which equal distances look equal (Ottosson 2020: A perceptual color space for image processing): mixtures
// of colours lie between them, as bright as they are, and do not turn grey or muddy.
const linear = (v: number): number => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;

/** Of r, g, b from 0 to 255. */
export function oklab(r: number, g: number, b: number): [number, number, number] {
  const R = linear(r / 255), G = linear(g / 255), B = linear(b / 255),
    l = Math.cbrt(0.4122214708 * R + 0.5363325363 * G + 0.0514459929 * B),
    m = Math.cbrt(0.2119034982 * R + 0.6806995451 * G + 0.1073969566 * B),
    s = Math.cbrt(0.0883024619 * R + 0.2817188376 * G + 0.6299787005 * B);
  return [0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s, 0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s];
}

const STEPS = 8191, gamma = Uint8Array.from({ length: STEPS + 1 }, (_, i) => {
  const v = i / STEPS;
  return Math.round(255 * (v <= 0.0031308 ? 12.92 * v : 1.055 * v ** (1 / 2.4) - 0.055));
}), byte = (v: number): number => gamma[v <= 0 ? 0 : v >= 1 ? STEPS : (v * STEPS + 0.5) | 0];

/** Writes r, g, b to `out` from `at` on. */
export function fromOklab(L: number, a: number, b: number, out: Uint8ClampedArray, at: number): void {
  const l = (L + 0.3963377774 * a + 0.2158037573 * b) ** 3, m = (L - 0.1055613458 * a - 0.0638541728 * b) ** 3,
    s = (L - 0.0894841775 * a - 1.291485548 * b) ** 3;
  out[at] = byte(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s);
  out[at + 1] = byte(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s);
  out[at + 2] = byte(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s);
}
