"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const [slider, button, label] = ["step", "play", "label"].map((id) => document.getElementById(id));
const rows = document.querySelectorAll("tbody tr"), last = data.places.length - 1;
let timer = null;
function show(step) {
  slider.value = step;
  label.textContent = "step " + step + " of " + last + data.said[step];
  data.places[step].forEach(([x, y], agent) => {
    const element = document.getElementById("agent-" + agent);
    element.setAttribute("transform", "translate(" + x + " " + y + ")");
    element.classList.toggle("crash", data.faulty[step].includes(agent));
  });
  rows.forEach((row, index) => row.classList.toggle("now", index === step));
}
function pause() { clearInterval(timer); timer = null; button.textContent = "Play"; }
function play() {
  if (Number(slider.value) >= last) show(0);
  button.textContent = "Pause";
  timer = setInterval(() => {
    show(Number(slider.value) + 1);
    if (Number(slider.value) >= last) pause();
  }, 700);
}
button.addEventListener("click", () => (timer === null ? play() : pause()));
slider.addEventListener("input", () => { pause(); show(Number(slider.value)); });
if (last === 0) { button.disabled = true; slider.disabled = true; }
show(0);
