// A reader whose fault is behind five steps: who does not see that one was climbed never comes to the next. For a test.

export function steps(input: Buffer): void {
  if (input[0] !== 0x77) return;
  if (input[1] !== 0x72) return;
  if (input[2] !== 0x69) return;
  if (input[3] !== 0x74) return;
  if (input[4] === 0x21) throw new Error('at the top');
}
