// SPDX-License-Identifier: MIT
// Random numbers of tests: the same in every run, unless WEFT_SEED is set (tests/needed.py).
export function dice(usual) {
  const moved = Number(process.env.WEFT_SEED ?? 0);
  console.log(`random numbers: WEFT_SEED=${moved}`);
  let seed = usual + moved;
  return () => {
    seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
    return (seed >>> 8) / 2 ** 24;
  };
}
