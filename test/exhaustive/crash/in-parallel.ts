// Runs several tasks at a time, for processes that mostly wait. Returns results in the order of the tasks.

/** @param width the number of tasks at a time */
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
