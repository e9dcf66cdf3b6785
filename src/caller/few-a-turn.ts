/** Runs what it is given: at once where there is little of it, and of more at most so many in each turn of the event loop, in order. */
export type FewATurn = (run: () => void) => void;

export function createFewATurn(most: number): FewATurn {
  const waiting: (() => void)[] = [];
  let ran = 0;
  let turn: NodeJS.Immediate | undefined;
  return (run) => {
    turn ??= setImmediate(onTurn);
    if (ran >= most) return void waiting.push(run);
    ran += 1;
    run();
  };

  function onTurn(): void {
    const now = waiting.splice(0, most);
    ran = now.length;
    turn = ran > 0 ? setImmediate(onTurn) : undefined;
    for (const run of now) run();
  }
}
