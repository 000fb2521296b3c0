// Several tries at a time, each a process that mostly waits; results in the order of the tries.

/** @param width how many at a time */
export async function inParallel<T, R>(
  items: readonly T[],
  width: number,
  act: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  const work = async (): Promise<void> => {
    for (let at = next++; at < items.length; at = next++) results[at] = await act(items[at]!);
  };
  await Promise.all(Array.from({ length: width }, work));
  return results;
}
