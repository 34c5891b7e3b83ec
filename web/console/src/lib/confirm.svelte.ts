/** Questions before actions, and the notices about their results. */
export interface Question {
  title: string;
  text: string; // what will happen
  action: string; // label of the button
  isDangerous?: boolean;
  reason?: boolean; // ask for a reason
  typed?: string; // text that has to be typed first
  option?: string; // label of a choice
  done: string; // notice after the success
  run: (reason: string, isChosen: boolean) => Promise<unknown>;
}

let question = $state.raw<Question>();
let notice = $state("");
let timer = 0;

export const dialog = {
  get question(): Question | undefined {
    return question;
  },
  confirm(next: Question): void {
    question = next;
  },
  close(): void {
    question = undefined;
  },
};

export const notices = {
  get text(): string {
    return notice;
  },
  show(text: string): void {
    notice = text;
    clearTimeout(timer);
    timer = setTimeout(() => (notice = ""), 8_000) as unknown as number;
  },
};
