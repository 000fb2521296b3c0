// A reader with a fault behind several steps, each with one correct character of eight. A fuzzer without coverage never
// reaches the next step. For a test.

export function steps(input: Buffer): void {
  for (let step = 0; step < 7; step += 1) {
    if (!isStep(input, step)) return;
  }
  throw new Error('at the top');
}

function isStep(input: Buffer, step: number): boolean {
  const is = (at: number): boolean => (input[at] ?? 0) >> 3 === 0x0e;
  if (step === 0) return is(0);
  if (step === 1) return is(1);
  if (step === 2) return is(2);
  if (step === 3) return is(3);
  if (step === 4) return is(4);
  if (step === 5) return is(5);
  return is(6);
}
